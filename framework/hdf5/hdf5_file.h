// Wraps HDF5 in two small classes: one builds a file image in memory, one reads a file.
//
// HDF5's own error printing is off, and so are all features that would open another file; the innermost line of its
// error stack becomes the error message.  This header does not include hdf5.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/hdf5/memory_file.h"

namespace dtrain {

// Owns an HDF5 identifier, with the function that closes it.  Move-only.
class Hdf5Handle {
 public:
  using Closer = int (*)(int64_t);
  Hdf5Handle() = default;
  Hdf5Handle(int64_t id, Closer closer) : id_(id), closer_(closer) {}
  ~Hdf5Handle() {
    if (id_ >= 0) closer_(id_);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  int64_t get() const { return id_; }
  int Close() { return closer_(std::exchange(id_, -1)); }  // negative on failure

 private:
  int64_t id_ = -1;
  Closer closer_ = nullptr;
};

// Builds a file in memory.  Creates the groups of a name's path.  Throws CheckpointError if memory runs out.
class Hdf5Builder {
 public:
  // Reserves a user block of `user_block` bytes (a power of 2 from 512 on, or 0), which HDF5 does not use: zeros.
  explicit Hdf5Builder(uint64_t user_block);

  // Writes a chunked data set with Fletcher-32 checksums.  `values` has as many elements as the shape.
  void WriteFloats(const std::string& name, const std::vector<int64_t>& shape, const float* values);
  void WriteText(const std::string& name, std::string_view text);

  // Set an attribute of `group`, which is created if necessary.
  void SetAttribute(const std::string& group, const std::string& name, int64_t value);
  void SetAttribute(const std::string& group, const std::string& name, std::string_view text);

  // Closes the file and returns it; valid as long as the builder.
  MemoryFile& Finish();

 private:
  Hdf5Handle OpenGroup(const std::string& name);

  MemoryFile memory_;
  Hdf5Handle file_;
  Hdf5Handle link_properties_;
};

// Reads a file.  Throws CheckpointError with the path, the name and HDF5's reason for everything that is missing, has
// another type, or fails its checksum.
//
// No other file is opened, whatever this one refers to: values in external storage, links to other files and virtual
// data sets are refused by name, since such a file may be any of the user's, or never end.  Soft links within the file
// are followed.  Filters that HDF5 lacks are loaded only from HDF5_PLUGIN_PATH, if that is set.
//
// HDF5 1.10 may crash on a damaged file, above all when names are listed; stored_checkpoint.h describes the protection.
class Hdf5Reader {
 public:
  // `path` is the file's name in messages.  The bytes are borrowed.
  Hdf5Reader(const MemoryFile& bytes, std::filesystem::path path);

  // Lists the names of all data sets below `group`, relative to it, in name order; none without the group.
  std::vector<std::string> DataSets(const std::string& group) const;
  // Lists the names directly in `group`, in name order; none without the group.
  std::vector<std::string> Children(const std::string& group) const;
  bool Has(const std::string& name) const;

  std::vector<int64_t> ShapeOf(const std::string& name) const;
  // Read all values.
  void ReadFloats(const std::string& name, std::span<float> values) const;
  void ReadDoubles(const std::string& name, std::span<double> values) const;
  void ReadBytes(const std::string& name, std::span<uint8_t> values) const;
  // Read entries of the first axis from `begin` on, as many as fill `values`.
  void ReadRows(const std::string& name, int64_t begin, std::span<float> values) const;
  void ReadRows(const std::string& name, int64_t begin, std::span<double> values) const;
  void ReadRows(const std::string& name, int64_t begin, std::span<uint8_t> values) const;
  // kBytes: unsigned 8-bit integers.
  enum class ValueType { kBytes, kWhole, kFloat, kOther };
  ValueType TypeOf(const std::string& name) const;
  int64_t ValueBytesOf(const std::string& name) const;  // of one value in the file
  std::string ReadText(const std::string& name) const;
  // Read a single value; throw for a list, or a text without a fixed length.
  int64_t IntAttribute(const std::string& group, const std::string& name) const;
  std::string TextAttribute(const std::string& group, const std::string& name) const;

  const std::filesystem::path& path() const { return path_; }
  // Returns the file's size in bytes.  dtrain's own files are not compressed, so they cannot hold more numbers than fit
  // in it.
  int64_t file_bytes() const { return file_bytes_; }

 private:
  Hdf5Handle OpenData(const std::string& name) const;
  // `type` is HDF5's type of the values in memory.
  void ReadValues(const std::string& name, int64_t type, size_t count, void* values) const;
  void ReadRows(const std::string& name, int64_t begin, int64_t type, size_t count,
                void* values) const;
  // Opens a single value of this class of types (H5T_INTEGER, H5T_STRING).
  Hdf5Handle OpenAttribute(const std::string& group, const std::string& name, int type_class) const;
  [[noreturn]] void Fail(const std::string& name) const;
  // Call it when H5Dread has failed.
  [[noreturn]] void FailToRead(const Hdf5Handle& data, const std::string& name) const;

  std::filesystem::path path_;
  Hdf5Handle file_;
  int64_t file_bytes_ = 0;
};

}  // namespace dtrain
