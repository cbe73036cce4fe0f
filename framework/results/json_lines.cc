#include "framework/results/json_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// Returns the lines up to `step`.  Drops an incomplete last line, which a killed run may have left.
std::string KeepUpTo(const std::string& content, int64_t step) {
  std::istringstream lines(content);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const auto at = json.find("step");
    if (at == json.end() || !at->is_number_integer()) continue;
    if (at->get<int64_t>() <= step) kept += line + "\n";
  }
  return kept;
}

[[noreturn]] void ThrowErrno(const fs::path& path) {
  throw RunFileError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

}  // namespace

JsonLines::JsonLines(const fs::path& path, std::optional<int64_t> resumed_step) : path_(path) {
  if (resumed_step && fs::is_regular_file(fs::symlink_status(path))) {
    WriteFileDurably(path, KeepUpTo(ReadFile(path), *resumed_step));
    fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd_ < 0) ThrowErrno(path_);
  } else {
    fd_ = CreateFile(path);
  }
}

JsonLines::~JsonLines() { ::close(fd_); }

void JsonLines::Write(const std::string& line) {
  std::string text = line + "\n";
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno(path_);
    text.erase(0, static_cast<size_t>(written));
  }
}

}  // namespace dtrain
