// A range of the arenas, cut where parameters end: whether weights decay is a parameter's to say.
#pragma once

#include <algorithm>
#include <atomic>

#include "framework/core/check.h"
#include "framework/core/layout.h"
#include "framework/core/range.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {

// body(count, offset, decays) for every piece of `range` that lies in one parameter, in order;
// `offset` counts from range.begin.
template <class Body>
void ForEachPiece(const ArenaLayout& layout, Range range, const Body& body) {
  const auto& entries = layout.entries;
  auto entry = std::partition_point(entries.begin(), entries.end(), [&](const ArenaEntry& e) {
    return e.range.end <= range.begin;
  });
  for (int64_t done = range.begin; done < range.end; ++entry) {
    DT_CHECK(entry != entries.end()) << "range ends at " << range.end << " of " << layout.size();
    const Range piece = {done, std::min(range.end, entry->range.end)};
    body(piece.size(), piece.begin - range.begin, entry->weight_decay);
    done = piece.end;
  }
}

// As ForEachPiece, the elements of each piece shared out among `threads`.  update(count, offset,
// decays) says whether all that it wrote is finite, and so does the answer.
template <class Update>
bool UpdatePieces(const ArenaLayout& layout, Range range, int threads, const Update& update) {
  std::atomic<bool> finite = true;
  ForEachPiece(layout, range, [&](int64_t count, int64_t offset, bool decays) {
    ForEachSlice(threads, count, [&](Range slice) {
      if (!update(slice.size(), offset + slice.begin, decays)) finite = false;
    });
  });
  return finite;
}

}  // namespace dtrain
