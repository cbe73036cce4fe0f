// Measures how long all-reduces take in the current environment.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/collective.h"

namespace dtrain {

// Holds T(M), the time of an all-reduce of M bytes, measured at some sizes.
struct ReduceTable {
  struct Entry {
    int64_t bytes = 0;
    double seconds = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;  // ascending by bytes

  // Returns T(bytes) by linear interpolation.  Below the first entry it is that entry's time; above
  // the last it is extrapolated from the last two.  0 without entries.
  double Seconds(int64_t bytes) const;

  friend bool operator==(const ReduceTable&, const ReduceTable&) = default;
};

// Returns the largest size in bytes for which the collective uses a separate schedule for small
// vectors (CollectiveRules::small_scheduler), with so many ranks.  0 if there is none, or if it is
// unknown (`mpi`).
int64_t SmallBytesOf(const std::string& collective, int world);

// Returns the sizes at which T(M) is measured, in bytes, ascending: a few up to `bytes_most`.  If
// vectors of at most `small_bytes` use a separate schedule (SmallBytesOf), there is a size on
// either side of that limit, so that a jump of T(M) is not smoothed.
std::vector<int64_t> SizesToMeasure(int64_t bytes_most, int64_t small_bytes = 0);

// Measures each of these sizes several times.  It is a collective call with the same sizes on all
// ranks, which do nothing else meanwhile.  `sum(i)` carries out one sum of sizes[i] bytes.  Each
// rank returns the times that it measured itself.  `go_on` is called before each size and must
// return the same on all ranks; if it returns false, the table is empty.
ReduceTable MeasureSums(Transport& transport, const std::vector<int64_t>& sizes,
                        const std::function<bool()>& go_on,
                        const std::function<void(size_t i)>& sum);

// Measures the reductions of a collective in this memory, of vectors up to all of it.
ReduceTable MeasureReductions(
    Transport& transport, Collective& collective, std::span<float> memory,
    const std::function<bool()>& go_on = [] { return true; });

}  // namespace dtrain
