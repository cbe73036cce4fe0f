// SparseList: a list of entries in memory of its own, which grows and does not shrink.
// SparseShelf: memory for several lists of entries whose total size is not known beforehand.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/comm/sparse_collective.h"

namespace dtrain {

class SparseList {
 public:
  SparseList() = default;
  SparseList(SparseList&& other) noexcept { swap(other); }
  SparseList& operator=(SparseList&& other) noexcept {
    swap(other);
    return *this;
  }
  void swap(SparseList& other) noexcept {
    std::swap(positions_, other.positions_);
    std::swap(values_, other.values_);
    std::swap(capacity_, other.capacity_);
    std::swap(size_, other.size_);
  }

  int64_t size() const { return size_; }
  int64_t capacity() const { return capacity_; }
  int32_t* positions() { return positions_.get(); }
  float* values() { return values_.get(); }
  SparseEntries entries() const {
    const auto count = static_cast<size_t>(size_);
    return {{positions_.get(), count}, {values_.get(), count}};
  }

  // Makes room for `capacity` entries in all.  Existing entries may move.
  void Reserve(int64_t capacity);
  // Sets the number of entries.  New ones have unspecified values.
  void Resize(int64_t size) {
    Reserve(size);
    size_ = size;
  }
  void Clear() { size_ = 0; }
  // Appends an entry.  There must be room for it.
  void Add(int32_t position, float value) {
    positions_[size_] = position;
    values_[size_++] = value;
  }
  void Append(SparseEntries entries);
  // Overwrites existing entries from `begin` on.
  void Write(int64_t begin, SparseEntries entries);

 private:
  std::unique_ptr<int32_t[]> positions_;
  std::unique_ptr<float[]> values_;
  int64_t capacity_ = 0;
  int64_t size_ = 0;
};

class SparseShelf {
 public:
  struct Place {
    int32_t* positions;
    float* values;
    int64_t size;
    SparseEntries entries() const {
      return {{positions, static_cast<size_t>(size)}, {values, static_cast<size_t>(size)}};
    }
  };

  // Returns memory for `size` entries, which does not move until Clear.
  Place Take(int64_t size);
  // Frees all places.  The memory becomes one block that has room for as much as was taken.
  void Clear();

 private:
  std::vector<SparseList> blocks_;  // the last one has room
};

}  // namespace dtrain
