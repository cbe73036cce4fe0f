// Cuts a range of the arenas at the ends of parameters, since weight decay is a property of a parameter, and into
// slices for the threads.
#pragma once

#include <algorithm>
#include <atomic>

#include "framework/core/check.h"
#include "framework/core/layout.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {

// Calls body(count, offset, decays) for parts of `range` that are in one parameter each; the slices of a long one run
// on several threads.  `offset` counts from range.begin.  Returns false if any body did.
template <class Body>
bool ForEachParameterSlice(const ArenaLayout& layout, Range range, int threads, const Body& body) {
  const auto& entries = layout.entries;
  auto entry = std::partition_point(entries.begin(), entries.end(), [&](const ArenaEntry& e) {
    return e.range.end <= range.begin;
  });
  std::atomic<bool> all = true;
  for (int64_t done = range.begin; done < range.end; ++entry) {
    DT_CHECK(entry != entries.end()) << "range ends at " << range.end << " of " << layout.size();
    const Range part = {done, std::min(range.end, entry->range.end)};
    ForEachSlice(threads, part.size(), [&](Range slice) {
      const int64_t offset = part.begin - range.begin + slice.begin;
      if (!body(slice.size(), offset, entry->weight_decay)) all = false;
    });
    done = part.end;
  }
  return all;
}

}  // namespace dtrain
