// A contiguous piece of a flat arena, in elements: [begin, end).
//
// Fusion buckets, server shards, compressors and solver updates all work on Ranges of the weight and
// gradient arenas, never on single parameters.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dtrain {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool Contains(const Range& r) const { return begin <= r.begin && r.end <= end; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Piece `index` of `pieces` equal parts of `range`; the first (size % pieces) parts are one longer.
// The parts cover the range without gaps or overlaps, in order.
inline Range SplitEvenly(const Range& range, int64_t pieces, int64_t index) {
  const int64_t base = range.size() / pieces;
  const int64_t longer = range.size() % pieces;
  const int64_t begin = range.begin + index * base + std::min(index, longer);
  return {begin, begin + base + (index < longer ? 1 : 0)};
}

}  // namespace dtrain
