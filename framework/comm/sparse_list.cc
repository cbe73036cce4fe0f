#include "framework/comm/sparse_list.h"

#include <algorithm>

#include "framework/core/check.h"

namespace dtrain {
namespace {

constexpr int64_t kLeastRoom = 64;

}  // namespace

// The capacity grows by at least a half, so that a list that grows entry by entry is not moved each
// time.
void SparseList::Reserve(int64_t capacity) {
  if (capacity <= capacity_) return;
  SparseList larger;
  larger.capacity_ = std::max({capacity, capacity_ + capacity_ / 2, kLeastRoom});
  larger.positions_ =
      std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(larger.capacity_));
  larger.values_ = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(larger.capacity_));
  larger.Append(entries());
  swap(larger);
}

void SparseList::Append(SparseEntries entries) {
  const int64_t begin = size_;
  Resize(begin + entries.size());
  Write(begin, entries);
}

void SparseList::Write(int64_t begin, SparseEntries entries) {
  DT_CHECK(begin + entries.size() <= size_) << begin << " and " << entries.size() << " more";
  std::copy(entries.positions.begin(), entries.positions.end(), positions_.get() + begin);
  std::copy(entries.values.begin(), entries.values.end(), values_.get() + begin);
}

SparseShelf::Place SparseShelf::Take(int64_t size) {
  if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < size) {
    blocks_.emplace_back();
    blocks_.back().Reserve(size);
  }
  SparseList& block = blocks_.back();
  const int64_t begin = block.size();
  block.Resize(begin + size);
  return {block.positions() + begin, block.values() + begin, size};
}

void SparseShelf::Clear() {
  int64_t capacity = 0;
  for (const SparseList& block : blocks_) capacity += block.capacity();
  if (blocks_.size() > 1) {
    blocks_.resize(1);
    blocks_[0].Clear();
    blocks_[0].Reserve(capacity);
  }
  if (!blocks_.empty()) blocks_[0].Clear();
}

}  // namespace dtrain
