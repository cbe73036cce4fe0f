// Column sums of a matrix whose elements are computed on the fly by a device lambda.
//
//   SumColumns(queue, {"name", {what the first lambda reads}}, {what the second touches}, sums, partial,
//              [=] DT_DEVICE(int64_t row, int64_t column) -> double { return ...; },
//              [=] DT_DEVICE(int64_t column, double sum) { ... });
//
// Beside{count, [=] DT_DEVICE(int64_t i) { ... }} as a last argument is other work of the same kernel.
#pragma once

#include <initializer_list>

#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/loops.h"

namespace dtrain {

// Two sums that are computed together.
struct SumPair {
  double first, second;

  friend DT_DEVICE SumPair operator+(const SumPair& a, const SumPair& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

// Calls done(column, value(0, column) + value(1, column) + ...) for every column.  T{} must be the neutral element of
// the addition; `partial` is scratch memory for sums.partial_sums() values of T.  `launch` names what `value` reads,
// `done_accesses` what `done` and `beside` touch.
template <class T, class Value, class Done, class F = Nothing>
void SumColumns(CudaQueue& queue, const KernelLaunch& launch,
                std::initializer_list<Access> done_accesses, const ColumnSums& sums, T* partial,
                Value value, Done done, const Beside<F>& beside = {}) {
#ifdef __CUDACC__
  static_assert(ColumnSums::kTile == loops::kTile && ColumnSums::kLanes == loops::kLanes);
#endif
  unsigned* const finished = sums.finished();
  const bool joins = sums.slices() > 1;
  const int64_t parts = joins ? sums.partial_sums() : 0;
  ForEachColumn(queue,
                {launch.name,
                 launch.accesses,
                 done_accesses,
                 {Writes(partial, parts), Reads(partial, parts),
                  Updates(finished, joins ? sums.tiles() : 0)}},
                sums.rows(), sums.columns(), sums.slices(), partial, finished, value, done, beside);
}

}  // namespace dtrain
