#include "framework/device/cpu/threads.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "framework/core/text.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace dtrain {
namespace {

// Describes the ranks of one node, and the CPUs that they may use together.
struct NodeCpus {
  int ranks = 0, workers = 0;
  std::set<int> cpus;
};

std::map<int, NodeCpus> NodesOf(const std::vector<RankCpus>& ranks, int workers) {
  std::map<int, NodeCpus> nodes;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    NodeCpus& node = nodes[ranks[rank].node];
    ++node.ranks;
    if (static_cast<int>(rank) < workers) ++node.workers;
    node.cpus.insert(ranks[rank].cpus.begin(), ranks[rank].cpus.end());
  }
  return nodes;
}

}  // namespace

int CpuQuota(const std::filesystem::path& groups, const std::filesystem::path& root) {
  std::ifstream lines(groups);
  std::filesystem::path group;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) group = line.substr(4);
  }
  double least = 0;
  for (bool more = true; more; group = group.parent_path()) {
    more = !group.empty();
    std::ifstream file(root / group / "cpu.max");
    double quota = 0, period = 0;  // "max 100000": the first is no number, so there is no quota
    if (!(file >> quota >> period) || period <= 0) continue;
    if (least == 0 || quota / period < least) least = quota / period;
  }
  return least == 0 ? 0 : std::max(1, static_cast<int>(least));
}

std::vector<int> UsableCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  // A quota names no CPUs; all processes that it holds for take the same.
  const auto quota = static_cast<size_t>(CpuQuota());
  if (quota > 0 && quota < cpus.size()) cpus.resize(quota);
  return cpus;
}

std::optional<int> ThreadsOfEnvironment() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long threads = std::strtol(text, &end, 10);  // "4,2" is a list by level
  if (end == text || (*end != '\0' && *end != ',') || threads < 1 || threads > kThreadsMost) {
    return std::nullopt;
  }
  return static_cast<int>(threads);
}

int ThreadsByRule(const std::vector<RankCpus>& ranks, int workers) {
  if (const auto given = ThreadsOfEnvironment()) return *given;
  const std::map<int, NodeCpus> nodes = NodesOf(ranks, workers);
  int threads = std::numeric_limits<int>::max();
  for (int worker = 0; worker < workers; ++worker) {
    const NodeCpus& node = nodes.at(ranks[worker].node);
    const int share = static_cast<int>(node.cpus.size()) / node.ranks;
    threads = std::min({threads, share, static_cast<int>(ranks[worker].cpus.size())});
  }
  return std::max(1, threads);
}

std::string CrowdingOf(const std::vector<RankCpus>& ranks, int workers, int threads) {
  constexpr int kRanksOfACpu = 4;  // a few take turns without harm
  for (const auto& [number, node] : NodesOf(ranks, workers)) {
    const auto cpus = static_cast<int>(node.cpus.size());
    if (cpus == 0) continue;  // unknown
    const std::string share = " share " + Counted(cpus, "core");
    if (node.ranks > kRanksOfACpu * cpus) {
      return Counted(node.ranks, "rank") + share + ": each step waits until all had their turns";
    }
    if (threads > 1 && node.workers * threads > cpus) {
      return Counted(node.workers * threads, "thread") + " of " + Counted(node.workers, "worker") +
             share + ": fewer `threads` are faster";
    }
  }
  return "";
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
