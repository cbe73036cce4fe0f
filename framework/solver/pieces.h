// A range of the arenas, cut where parameters end: whether weights decay is a parameter's to say.
#pragma once

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/layout.h"
#include "framework/core/range.h"

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

}  // namespace dtrain
