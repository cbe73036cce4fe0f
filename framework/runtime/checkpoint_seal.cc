#include "framework/runtime/checkpoint_seal.h"

#include <fmt/format.h>

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
  std::string seal = fmt::format("{}version 1\nbytes {}\nsha256 {}\n", kMagic, content.size(),
                                 Sha256::Of(content));
  DT_CHECK(seal.size() <= kSealBytes) << seal;
  seal.resize(kSealBytes, '\n');
  return seal;
}

std::string SealProblem(std::string_view file) {
  if (file.size() < kSealBytes) return fmt::format("it is truncated to {} bytes", file.size());
  const std::string_view given = file.substr(0, kSealBytes);
  const std::string due = SealOf(file.substr(kSealBytes));
  if (given == due) return "";
  std::string_view given_rest = given, due_rest = due;
  while (!due_rest.empty()) {
    const std::string_view is = TakeLine(given_rest), should_be = TakeLine(due_rest);
    if (is == should_be) continue;
    return fmt::format("its first block says {:?}, its bytes say {:?}", is, should_be);
  }
  return "its first block goes on where it should end";
}

FileKind KindOf(std::string_view file) {
  if (file.starts_with(kHdf5Signature)) return FileKind::kHdf5;
  if (file.starts_with(kMagic)) return FileKind::kSealed;
  const bool hdf5_behind =
      file.size() > kSealBytes && file.substr(kSealBytes).starts_with(kHdf5Signature);
  return hdf5_behind ? FileKind::kSealed : FileKind::kOther;
}

}  // namespace dtrain
