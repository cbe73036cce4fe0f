// Safetensors files (github.com/huggingface/safetensors, format 1), the way weights travel to and
// from PyTorch:
//
//   8 bytes, little-endian      n, the length of the header
//   n bytes of JSON             {"conv1.weight": {"dtype": "F32", "shape": [6, 1, 5, 5],
//                                "data_offsets": [begin, end]}, ..., "__metadata__": {text: text}}
//   the rest                    the tensors, row-major, little-endian; offsets count from here
//
// A header is believed only when it fits the file to the byte: tensors lie side by side without
// gaps or overlaps, each as long as its type and shape say, up to the end of the file.
//
// Metadata may hold file_sha256: the SHA-256 of the whole file, taken with 64 zeros in the place of
// its own digits.  Where it is, the file must have it.
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
  std::string dtype;  // the file's word: "F32", "BF16", "I64"
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes, from the start of the data
  uint64_t end = 0;

  int64_t count() const;  // elements
};

inline constexpr char kFileSha256[] = "file_sha256";

// Throws CheckpointError with the path, and where in the file, for everything the format forbids.
// The file is copied into memory once: what was checked is what is read.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::filesystem::path path);

  const std::vector<SafeTensorEntry>& entries() const { return entries_; }  // by name
  const SafeTensorEntry* Find(const std::string& name) const;               // null: none
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

  // As many as count() says.  Floats may be stored as F32, BF16 or F16, ints as I32 or I64 (values
  // beyond 32 bits are an error).
  void ReadFloats(const SafeTensorEntry& entry, float* values) const;
  void ReadInts(const SafeTensorEntry& entry, int32_t* values) const;

  // "PATH is damaged: <problem>", with what to do where a program has saved the file anew.
  [[noreturn]] void ThrowDamaged(const std::string& problem) const;

 private:
  void ReadHeader();
  void AddEntry(const std::string& name, const void* json);  // nlohmann::json stays in the .cc
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

// Whether a file begins as one of these (or is named so): for readers of several formats.
bool LooksLikeSafetensors(const std::filesystem::path& path);

// What a file is written from; `data` is borrowed.
struct SafeTensorSource {
  std::string name;
  std::string dtype;  // "F32", "I32" or "I64"
  std::vector<int64_t> shape;
  const void* data = nullptr;
};

// Writes durably (core/file.h); the file depends on names and values alone, not on the order given.
// Where the metadata has file_sha256, its text is replaced by the hash.  Throws CheckpointError.
void WriteSafetensors(const std::filesystem::path& path, std::vector<SafeTensorSource> tensors,
                      std::map<std::string, std::string> metadata);

}  // namespace dtrain
