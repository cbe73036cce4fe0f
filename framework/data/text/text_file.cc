#include "framework/data/text/parallel_text.h"

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

// `line`, counted from 1, without its end.
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

std::vector<std::string> ReadLines(const fs::path& path) {
  MemberReader in(path);
  std::vector<std::string> lines;
  std::string pending, block(kBlock, '\0');
  while (const size_t got = in.Read(block.data(), kBlock)) {
    std::string_view rest(block.data(), got);
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      pending += rest.substr(0, end);
      lines.push_back(Checked(path, lines.size() + 1, pending));
      pending.clear();
      rest.remove_prefix(end + 1);
    }
    pending += rest;
    if (pending.size() <= kLongestLine) continue;
    ThrowAt(path, lines.size() + 1, fmt::format("it has more than {} bytes", kLongestLine));
  }
  if (!pending.empty()) lines.push_back(Checked(path, lines.size() + 1, pending));
  return lines;
}

}  // namespace dtrain
