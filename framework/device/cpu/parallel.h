// ForEachSlice: elementwise work shared out among the OpenMP threads of this rank.
//
// Only for loops whose result does not depend on where a slice ends.
#pragma once

#include <omp.h>

#include "framework/core/range.h"

namespace dtrain {

// Elements below which waking a second thread costs more than it saves.
inline constexpr int64_t kSliceMin = 16384;

template <class Body>
void ForEachSlice(int threads, int64_t count, const Body& body) {
  if (threads == 1 || count < 2 * kSliceMin) return body(Range{0, count});
#pragma omp parallel num_threads(threads)
  body(SplitEvenly({0, count}, omp_get_num_threads(), omp_get_thread_num()));
}

}  // namespace dtrain
