// Lines of text files, plain or packed (data/files/archive.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

// All lines without their ends (\n or \r\n); the last one may lack it.  Throws DataError with file
// and line for text that is no UTF-8, holds a zero byte or a line of more than a megabyte, and as
// MemberReader does.
std::vector<std::string> ReadLines(const std::filesystem::path& path);

}  // namespace dtrain
