// A range of the arenas, cut where parameters end - whether weights decay is a parameter's to say -
// and into slices for the threads.
#pragma once

#include <algorithm>
#include <atomic>

#include "framework/core/check.h"
#include "framework/core/layout.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {

// body(count, offset, decays) for pieces of `range` that lie in one parameter each, the slices of a
// long one on several threads; `offset` counts from range.begin.  False when any body said so.
template <class Body>
bool ForEachPiece(const ArenaLayout& layout, Range range, int threads, const Body& body) {
  const auto& entries = layout.entries;
  auto entry = std::partition_point(entries.begin(), entries.end(), [&](const ArenaEntry& e) {
    return e.range.end <= range.begin;
  });
  std::atomic<bool> all = true;
  for (int64_t done = range.begin; done < range.end; ++entry) {
    DT_CHECK(entry != entries.end()) << "range ends at " << range.end << " of " << layout.size();
    const Range piece = {done, std::min(range.end, entry->range.end)};
    ForEachSlice(threads, piece.size(), [&](Range slice) {
      const int64_t offset = piece.begin - range.begin + slice.begin;
      if (!body(slice.size(), offset, entry->weight_decay)) all = false;
    });
    done = piece.end;
  }
  return all;
}

}  // namespace dtrain
