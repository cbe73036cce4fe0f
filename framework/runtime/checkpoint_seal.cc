#include "framework/runtime/checkpoint_seal.h"

#include <fmt/format.h>

#include <charconv>

#include "framework/core/check.h"
#include "framework/core/sha256.h"

namespace dtrain {
namespace {

constexpr std::string_view kMagic = "dtrain checkpoint\n";
constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  return line;
}

}  // namespace

std::string SealOf(std::string_view content) {
  std::string seal = fmt::format("{}version {}\nbytes {}\nsha256 {}\n", kMagic, kSealVersion,
                                 content.size(), Sha256::Of(content));
  DT_CHECK(seal.size() <= kSealBytes) << seal;
  seal.resize(kSealBytes, '\n');
  return seal;
}

std::string SealProblem(std::string_view file) {
  if (file.size() < kSealBytes) return fmt::format("it is truncated to {} bytes", file.size());
  const std::string_view given = file.substr(0, kSealBytes);
  const std::string expected = SealOf(file.substr(kSealBytes));
  if (given == expected) return "";
  std::string_view given_rest = given, expected_rest = expected;
  while (!expected_rest.empty()) {
    const std::string_view is = TakeLine(given_rest), should_be = TakeLine(expected_rest);
    if (is == should_be) continue;
    return fmt::format("its first block says {:?}, its bytes say {:?}", is, should_be);
  }
  return "its first block goes on where it should end";
}

int64_t SealVersionOf(std::string_view file) {
  constexpr std::string_view kWord = "version ";
  std::string_view rest = file.substr(0, kSealBytes);
  if (!rest.starts_with(kMagic)) return 0;
  TakeLine(rest);
  const std::string_view line = TakeLine(rest);
  if (!line.starts_with(kWord)) return 0;
  int64_t version = 0;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + kWord.size(), end, version);
  return parsed.ec == std::errc() && parsed.ptr == end ? version : 0;
}

FileKind KindOf(std::string_view file) {
  if (file.starts_with(kHdf5Signature)) return FileKind::kHdf5;
  if (file.starts_with(kMagic)) return FileKind::kSealed;
  const bool hdf5_behind =
      file.size() > kSealBytes && file.substr(kSealBytes).starts_with(kHdf5Signature);
  return hdf5_behind ? FileKind::kSealed : FileKind::kOther;
}

}  // namespace dtrain
