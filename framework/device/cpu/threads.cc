#include "framework/device/cpu/threads.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace dtrain {
namespace {

// Describes the ranks of one node, and the CPUs that they may use together.
struct NodeCpus {
  int ranks = 0;
  std::set<int> cpus;
};

}  // namespace

std::vector<int> UsableCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int ThreadsByRule(const std::vector<RankCpus>& ranks, int workers) {
  std::map<int, NodeCpus> nodes;
  for (const RankCpus& rank : ranks) {
    NodeCpus& node = nodes[rank.node];
    ++node.ranks;
    node.cpus.insert(rank.cpus.begin(), rank.cpus.end());
  }
  int threads = std::numeric_limits<int>::max();
  for (int worker = 0; worker < workers; ++worker) {
    const NodeCpus& node = nodes.at(ranks[worker].node);
    const int share = static_cast<int>(node.cpus.size()) / node.ranks;
    threads = std::min({threads, share, static_cast<int>(ranks[worker].cpus.size())});
  }
  return std::max(1, threads);
}

void LimitSpinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "2000", 1);  // about 50 us
  // If this fails, the program runs on with the long spin.
  ::execv("/proc/self/exe", argv);
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
