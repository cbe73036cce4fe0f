// Range is a contiguous part of a flat arena; ArenaLayout holds the Range of each parameter (or state vector).
//
// Weights, gradients and solver vectors share one layout: parameters in the order in which the
// backward pass finishes their gradients, without gaps, so that a fusion bucket or a server shard
// is one Range of all of them.  Inside a parameter the order is row-major, as in PyTorch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/core/check.h"

namespace dtrain {

// A contiguous part of a flat arena, in elements: [begin, end).
//
// Fusion buckets, server shards and solver updates all work on Ranges of the weight and
// gradient arenas, never on single parameters.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool Contains(const Range& r) const { return begin <= r.begin && r.end <= end; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Returns part `index` of `parts` equal parts of `range`; the first (size % parts) parts are one longer.  The parts
// cover the range without gaps or overlaps, in order.
inline Range SplitEvenly(const Range& range, int64_t parts, int64_t index) {
  const int64_t base = range.size() / parts;
  const int64_t longer = range.size() % parts;
  const int64_t begin = range.begin + index * base + std::min(index, longer);
  return {begin, begin + base + (index < longer ? 1 : 0)};
}

struct ArenaEntry {
  std::string name;  // "conv1.weight"
  std::vector<int64_t> shape;
  Range range;  // elements
  bool weight_decay = true;
  double lr_factor = 1;  // multiplies the learning rate; 0: frozen
  DTRAIN_FIELDS(name, shape, range, weight_decay, lr_factor)
};

struct ArenaLayout {
  std::vector<ArenaEntry> entries;  // sorted by range
  int64_t size() const { return entries.empty() ? 0 : entries.back().range.end; }
  DTRAIN_FIELDS(entries)
};

// Calls work(part, lr_factor) for consecutive parts of `range` with one factor each.  A part spans all neighbouring
// entries of equal factor; it may begin and end inside a parameter.
template <class Work>
void ForEachFactor(const ArenaLayout& layout, Range range, const Work& work) {
  const auto& entries = layout.entries;
  auto entry = std::partition_point(entries.begin(), entries.end(), [&](const ArenaEntry& e) {
    return e.range.end <= range.begin;
  });
  while (!range.empty()) {
    DT_CHECK(entry != entries.end()) << "range ends at " << range.end << " of " << layout.size();
    const double factor = entry->lr_factor;
    int64_t end = range.begin;
    for (; entry != entries.end() && end < range.end && entry->lr_factor == factor; ++entry) {
      end = std::min(range.end, entry->range.end);
    }
    work(Range{range.begin, end}, factor);
    range.begin = end;
  }
}

// Copies the frozen entries (factor 0) from one arena of the layout to another.
inline void CopyFrozen(const ArenaLayout& layout, const float* from, float* to) {
  ForEachFactor(layout, {0, layout.size()}, [&](Range part, double factor) {
    if (factor == 0) std::copy_n(from + part.begin, part.size(), to + part.begin);
  });
}

}  // namespace dtrain
