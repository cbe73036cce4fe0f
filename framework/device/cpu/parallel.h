// ForEachSlice and ParallelFor divide loops among the OpenMP threads of this rank.
//
// All of dtrain's own parallel regions use RunTeam.  ThreadSanitizer does not see how gcc's OpenMP runtime
// synchronises, so under it a team consists of std::threads, whose races it does see.
#pragma once

#include <omp.h>

#ifdef __SANITIZE_THREAD__
#include <thread>
#include <vector>
#endif

#include "framework/core/layout.h"

namespace dtrain {

// Calls body(thread, team) on every thread of a team of at most `threads`, and returns when all have returned.  The
// body must not throw.
template <class Body>
void RunTeam(int threads, const Body& body) {
#ifdef __SANITIZE_THREAD__
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(body, thread, threads);
  body(0, threads);
  for (std::thread& other : others) other.join();
#else
#pragma omp parallel num_threads(threads)
  body(omp_get_thread_num(), omp_get_num_threads());
#endif
}

// Calls body(i) for i in [0, count); each thread gets an equal range of neighbours.
template <class Body>
void ParallelFor(int threads, int64_t count, const Body& body) {
  RunTeam(threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, count}, team, thread);
    for (int64_t i = share.begin; i < share.end; ++i) body(i);
  });
}

// For fewer elements, waking a second thread costs more than it saves.
inline constexpr int64_t kSliceMin = 16384;

// Calls body(range) for even slices of [0, count).  Only for elementwise work: its result must not depend on where a
// slice ends.
template <class Body>
void ForEachSlice(int threads, int64_t count, const Body& body) {
  if (threads == 1 || count < 2 * kSliceMin) return body(Range{0, count});
  RunTeam(threads, [&](int thread, int team) { body(SplitEvenly({0, count}, team, thread)); });
}

}  // namespace dtrain
