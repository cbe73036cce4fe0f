// The numbers of ranks of tests whose ranks are threads.
#pragma once

#include <algorithm>
#include <vector>

namespace dtrain {

// Returns `ranks`, under ThreadSanitizer without those above five: on two cores such threads wait for each other for
// minutes, and races show among fewer.  tests/nightly.sh has all in release, comm_mpi as processes.
inline std::vector<int> Worlds(std::vector<int> ranks) {
#ifdef __SANITIZE_THREAD__
  std::erase_if(ranks, [](int n) { return n > 5; });
#endif
  return ranks;
}

}  // namespace dtrain
