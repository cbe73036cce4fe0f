#include "framework/device/cpu/threads.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace dtrain {
namespace {

int UsableCores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace

int ThreadsByRule(int ranks_on_node) { return std::max(1, UsableCores() / std::max(1, ranks_on_node)); }

void LimitSpinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "2000", 1);  // about 50 us
  ::execv("/proc/self/exe", argv);        // where that fails, the long spin is no error
}

void FlushDenormals() {
#if defined(__SSE2__)
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _mm_setcsr(_mm_getcsr() | 0x0040);  // denormals are zero
#endif
}

void ApplyThreadBudget(int threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  FlushDenormals();
}

}  // namespace dtrain
