#include "framework/data/text/parallel_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/utf8.h"
#include "framework/data/files/archive.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBlock = size_t{1} << 16;
constexpr size_t kLongestLine = 1000000;

[[noreturn]] void ThrowAt(const fs::path& path, size_t line, const std::string& what) {
  throw DataError(fmt::format("{}: line {}: {}", path.string(), line, what),
                  "the file is damaged or no text in UTF-8");
}

// Checks line `number`, counted from 1, and returns it without its end.
std::string Checked(const fs::path& path, size_t number, std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find('\0') != std::string_view::npos) ThrowAt(path, number, "it has a zero byte");
  if (const auto invalid = FindInvalidUtf8(line)) {
    ThrowAt(path, number,
            fmt::format("byte {} of it (0x{:02x}) is no UTF-8", *invalid + 1,
                        static_cast<unsigned char>(line[*invalid])));
  }
  if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);  // byte order mark
  return std::string(line);
}

}  // namespace

LineReader::LineReader(const fs::path& path) : path_(path), in_(path), block_(kBlock, '\0') {}

bool LineReader::Next(std::string& line) {
  line.clear();
  for (bool ended = false; !ended;) {
    if (rest_.empty()) rest_ = {block_.data(), in_.Read(block_.data(), kBlock)};
    if (rest_.empty() && line.empty()) return false;  // the end of the file
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    ended = end < rest_.size() || rest_.empty();
    line += rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.size() <= kLongestLine) continue;
    ThrowAt(path_, lines_ + 1, fmt::format("it has more than {} bytes", kLongestLine));
  }
  line = Checked(path_, ++lines_, line);
  return true;
}

std::vector<std::string> ReadLines(const fs::path& path) {
  LineReader in(path);
  std::vector<std::string> lines;
  for (std::string line; in.Next(line);) lines.push_back(line);
  return lines;
}

}  // namespace dtrain
