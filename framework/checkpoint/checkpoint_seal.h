// The seal of a checkpoint is a text in its first 512 bytes with length and hash of the bytes that follow, so that
// damage is found before a library parses any of them.
//
//   dtrain checkpoint
//   version 1
//   bytes 20480                   number of bytes after the seal
//   sha256 <64 digits>            hash of these bytes
//   (newlines up to byte 512)
//
// The seal is a function of the content.  A reader computes it and compares every byte, so a change of any byte is
// found, in the seal too.  For HDF5 the seal is a user block, which its tools skip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace dtrain {

inline constexpr size_t kSealBytes = 512;
inline constexpr int64_t kSealVersion = 1;

// Returns the seal of this content.
std::string SealOf(std::string_view content);

// Returns a description of the damage of a file that should have a seal; "" if the file is undamaged.
std::string SealProblem(std::string_view file);

// Returns the SHA-256 in the seal of an undamaged file.
std::string HashInSeal(std::string_view file);

// Returns the version in the file's second line; 0 if there is none.  A version above kSealVersion means that a newer
// program wrote the file, unless the line is damaged.
int64_t SealVersionOf(std::string_view file);

// Throws the CheckpointError for a damaged file.
[[noreturn]] void ThrowDamaged(const std::filesystem::path& path, const std::string& problem);

// FileKind is the type of a file, which its first bytes decide.
enum class FileKind {
  // Begins with a seal, or has HDF5 at the offset where a sealed file has it.
  kSealed,
  kHdf5,  // HDF5 from the first byte on: a checkpoint from before there were seals
  kOther
};
FileKind KindOf(std::string_view file);

}  // namespace dtrain
