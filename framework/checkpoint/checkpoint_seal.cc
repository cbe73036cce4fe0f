#include "framework/checkpoint/checkpoint_seal.h"

#include <fmt/format.h>

#include <charconv>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"

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
  const std::string_view given = file.substr(0, kSealBytes), content = file.substr(kSealBytes);
  if (given == SealOf(content)) return "";
  // The seal does not match: find out which of its parts differs.
  std::string_view rest = given;
  TakeLine(rest), TakeLine(rest);
  const std::string_view bytes = TakeLine(rest), sha256 = TakeLine(rest);
  if (!bytes.starts_with("bytes ") || !sha256.starts_with("sha256 ")) {
    return fmt::format("its first {} bytes are not as they were written", kSealBytes);
  }
  if (bytes.substr(6) != std::to_string(content.size())) {
    return fmt::format("it has {} behind its first {}, not as many as were written",
                       Counted(static_cast<int64_t>(content.size()), "byte"), kSealBytes);
  }
  return "its bytes do not match the SHA-256 in its first block";
}

std::string HashInSeal(std::string_view file) {
  std::string_view rest = file.substr(0, kSealBytes);
  TakeLine(rest), TakeLine(rest), TakeLine(rest);
  const std::string_view line = TakeLine(rest);
  return std::string(line.substr(line.find(' ') + 1));
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

void ThrowDamaged(const std::filesystem::path& path, const std::string& problem) {
  throw CheckpointError(fmt::format("{} is damaged: {}", path.string(), problem),
                        "take an older checkpoint, or a copy of this one");
}

FileKind KindOf(std::string_view file) {
  if (file.starts_with(kHdf5Signature)) return FileKind::kHdf5;
  if (file.starts_with(kMagic)) return FileKind::kSealed;
  const bool hdf5_behind =
      file.size() > kSealBytes && file.substr(kSealBytes).starts_with(kHdf5Signature);
  return hdf5_behind ? FileKind::kSealed : FileKind::kOther;
}

}  // namespace dtrain
