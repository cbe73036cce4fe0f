// Safetensors files (github.com/huggingface/safetensors, format 1), for exchanging weights with PyTorch:
//
//   8 bytes, little-endian      n, the length of the header
//   n bytes of JSON             {"conv1.weight": {"dtype": "F32", "shape": [6, 1, 5, 5],
//                                "data_offsets": [begin, end]}, ..., "__metadata__": {text: text}}
//   the rest                    the tensors, row-major, little-endian; offsets count from here
//
// A header is accepted only if it fits the file to the byte: the tensors follow each other without gaps or overlaps up
// to the end of the file, and each is as long as its type and shape say.
//
// The metadata may contain file_sha256: the SHA-256 of the whole file, computed with 64 zeros in place of its own
// digits.  If it is present, it must match.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/hdf5/memory_file.h"

namespace dtrain {

struct SafeTensorEntry {
  std::string name;
  std::string dtype;  // as in the file: "F32", "BF16", "I64"
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes, from the start of the data
  uint64_t end = 0;

  int64_t count() const;  // elements
};

inline constexpr char kFileSha256[] = "file_sha256";

// Throws CheckpointError with the path and the place in the file for everything that the format forbids.  The file is
// copied into memory once, so the bytes that are read are those that were checked.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::filesystem::path path);

  const std::vector<SafeTensorEntry>& entries() const { return entries_; }  // sorted by name
  const SafeTensorEntry* Find(const std::string& name) const;               // null if there is none
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

  // Removes the prefix from all names, which must begin with it.
  void DropPrefix(const std::string& prefix);

  // Both fill count() values.  Floats may be stored as F32, BF16 or F16, ints as I32 or I64 (values beyond 32 bits are
  // an error).
  void ReadFloats(const SafeTensorEntry& entry, float* values) const;
  void ReadInts(const SafeTensorEntry& entry, int32_t* values) const;

  // Throws "PATH is damaged: <problem>", with a hint for a file that another program has saved again.
  [[noreturn]] void ThrowDamaged(const std::string& problem) const;

 private:
  void ReadHeader();
  // `json` is an nlohmann::json, kept out of this header
  void AddEntry(const std::string& name, const void* json);
  void CheckPlaces();
  void CheckHash() const;
  std::string_view Bytes(const SafeTensorEntry& entry) const;
  [[noreturn]] void Fail(const std::string& what, const std::string& hint = "") const;

  std::filesystem::path path_;
  std::unique_ptr<MemoryFile> file_;
  std::string_view content_;
  uint64_t data_begin_ = 0;  // bytes
  uint64_t data_bytes_ = 0;
  std::vector<SafeTensorEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

// True if a file begins like a safetensors file or has that extension; for readers of several formats.
bool LooksLikeSafetensors(const std::filesystem::path& path);

// A tensor to be written; `data` is borrowed.
struct SafeTensorSource {
  std::string name;
  std::string dtype;  // "F32", "I32" or "I64"
  std::vector<int64_t> shape;
  const void* data = nullptr;
};

// Writes durably (core/file.h).  The bytes of the file depend only on names and values, not on the order given.  If the
// metadata has file_sha256, its value is replaced by the hash.  Throws CheckpointError.
void WriteSafetensors(const std::filesystem::path& path, std::vector<SafeTensorSource> tensors,
                      std::map<std::string, std::string> metadata);

}  // namespace dtrain
