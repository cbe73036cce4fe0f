// How long sums over all ranks take here and now, by trying them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/comm/collective.h"

namespace dtrain {

// T(M), as measured at some sizes.
struct ReduceTable {
  struct Entry {
    int64_t bytes = 0;
    double seconds = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;  // by bytes, ascending

  // On the lines between the entries; below the first as it, beyond the last at the rate of the last
  // two.  0 without entries.
  double Seconds(int64_t bytes) const;

  friend bool operator==(const ReduceTable&, const ReduceTable&) = default;
};

// Up to how many bytes a vector takes a schedule of its own among so many ranks (CollectiveRules::small_planner);
// 0 where none does, or where nobody knows (`mpi`).
int64_t SmallBytesOf(const std::string& collective, int world);

// The sizes that T(M) is measured at, in bytes, ascending: a few up to `bytes_most`.  Where vectors of
// at most `small_bytes` go another way (SmallBytesOf), one on either side of that: a step of T(M)
// stays one.
std::vector<int64_t> SizesToMeasure(int64_t bytes_most, int64_t small_bytes = 0);

// Each of these sizes several times, on all ranks, which do nothing else meanwhile: all of them call it
// with the same sizes.  `sum(i)` carries out one sum of sizes[i] bytes.  What each rank has measured is
// its own.  `go_on` is asked before each size and says the same on all ranks: where it does not, the
// table is empty.
ReduceTable MeasureSums(Transport& transport, const std::vector<int64_t>& sizes,
                        const std::function<bool()>& go_on,
                        const std::function<void(size_t i)>& sum);

// Of a collective's sums, up to `bytes_most`.
ReduceTable MeasureReductions(
    Transport& transport, Collective& collective, int64_t bytes_most,
    const std::function<bool()>& go_on = [] { return true; });

}  // namespace dtrain
