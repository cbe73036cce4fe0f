// The seal of a checkpoint: its first 512 bytes, a text that says what the bytes behind it must be,
// so that damage is found before a library parses any of them.
//
//   dtrain checkpoint
//   version 1
//   bytes 20480                   how many follow the seal
//   sha256 <64 digits>            of these bytes
//   (new lines up to byte 512)
//
// There is one seal for any content, and a reader compares every byte of it with the one that it
// makes itself.  So a change of any byte is found, also of the seal's own.  To HDF5 the seal is a
// user block: its tools skip it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace dtrain {

inline constexpr size_t kSealBytes = 512;
inline constexpr int64_t kSealVersion = 1;

// The seal of what follows it.
std::string SealOf(std::string_view content);

// What is wrong with a file that should have a seal, in words; "" when it is as it was written.
std::string SealProblem(std::string_view file);

// The SHA-256 that the seal of a sound file names.
std::string HashInSeal(std::string_view file);

// The version that a file's second line names; 0 where it names none.  One above kSealVersion says
// that a newer program wrote the file, unless the line is damaged.
int64_t SealVersionOf(std::string_view file);

// CheckpointError: the file is not as it was written.
[[noreturn]] void ThrowDamaged(const std::filesystem::path& path, const std::string& problem);

// What a file is, by its first bytes alone.
enum class FileKind {
  kSealed,  // starts as a seal does, or holds HDF5 where a sealed file does
  kHdf5,    // HDF5 from the first byte on, as checkpoints were before there were seals
  kOther
};
FileKind KindOf(std::string_view file);

}  // namespace dtrain
