// Reads weights as safetensors files: header, tensors, metadata and hashes.
#include "framework/checkpoint/safetensors.h"

#include "framework/checkpoint/weights_file.h"
#include "framework/core/sha256.h"
#include "tests/fuzz/fuzz_target.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLengthBytes = 8, kHashDigits = 64;

// Puts the header's length in front; the header ends at the first line feed.  This lets the fuzzer
// pass the first check.
std::string WithLength(std::string_view rest) {
  const uint64_t header = std::min(rest.find('\n'), rest.size());
  std::string file(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) file[i] = static_cast<char>(header >> (8 * i));
  file += rest.substr(0, header);
  if (header < rest.size()) file += rest.substr(header + 1);
  return file;
}

// Replaces the file's hash by the right one, if the file has one.
void Seal(std::string& file) {
  const std::string member = "\"file_sha256\":\"";
  const size_t at = file.find(member);
  if (at == std::string::npos || file.size() - at - member.size() < kHashDigits) return;
  file.replace(at + member.size(), kHashDigits, std::string(kHashDigits, '0'));
  file.replace(at + member.size(), kHashDigits, Sha256::Of(file));
}

void CheckEntries(const SafetensorsReader& in) {
  for (const SafeTensorEntry& entry : in.entries()) {
    Require(in.Find(entry.name) == &entry, "a tensor is not found by its name");
    Require(entry.count() >= 0, "a tensor has a negative number of elements");
    if (entry.dtype != "I32" && entry.dtype != "I64") continue;
    std::vector<int32_t> values(static_cast<size_t>(entry.count()));
    Accepts(ExitCode::kCheckpoint, [&] { in.ReadInts(entry, values.data()); });
  }
}

void CheckWeights(const StoredWeights& stored) {
  Require(static_cast<int64_t>(stored.weights.size()) == stored.layout.parameters.size(),
          "weights are missing");
  Require(static_cast<int64_t>(stored.state.size()) == stored.layout.state.size(),
          "statistics are missing");
  const ModelLayout layout = {stored.layout.parameters, stored.layout.state, ""};
  WeightsSha256(layout, stored.weights.data(), stored.state.data());
}

// The first byte chooses whether the rest gets a right length, a right hash, both or neither.
bool Safetensors(std::string_view input) {
  InputReader in(input);
  const uint8_t choice = in.Byte();
  std::string file(in.Rest());
  if ((choice & 1) != 0) file = WithLength(file);
  if ((choice & 2) != 0) Seal(file);
  const fs::path path = WriteScratch("weights.safetensors", file);
  return Accepts(ExitCode::kCheckpoint, [&] {
    CheckEntries(SafetensorsReader(path));
    ReadStoredInfo(path);
    CheckWeights(ReadStoredWeights(path));
  });
}

DTRAIN_FUZZ_TARGET("safetensors", Safetensors);

}  // namespace
}  // namespace dtrain::fuzz
