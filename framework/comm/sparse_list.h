// SparseList: entries in memory of its own, which grows and does not shrink; and SparseShelf, memory
// for entries of which nobody knows beforehand how many there will be.
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

  // Room for so many entries in all.  Those that are there may move.
  void Reserve(int64_t capacity);
  // New entries are unspecified.
  void Resize(int64_t size) {
    Reserve(size);
    size_ = size;
  }
  void Clear() { size_ = 0; }
  // There is room.
  void Add(int32_t position, float value) {
    positions_[size_] = position;
    values_[size_++] = value;
  }
  void Append(SparseEntries entries);
  // Over those that are there.
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

  // Stays where it is until Clear.
  Place Take(int64_t size);
  // What did not fit into one block will next time.
  void Clear();

 private:
  std::vector<SparseList> blocks_;  // the last one has room
};

}  // namespace dtrain
