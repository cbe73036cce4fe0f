// Sets the thread budget of a rank; no other code does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// Returns the CPUs that this process may run on (its affinity mask), ascending, at most as many as the quota of its
// container allows (cgroup v2); none if they cannot be read.
std::vector<int> UsableCpus();

// Returns the CPUs that the control group of this process and those around it allow, rounded down, at least 1; 0 for any
// number.  It is the least quota / period of their files cpu.max (Linux, admin-guide/cgroup-v2).  `groups` names the
// group, `root` is where version 2 is mounted.
int CpuQuota(const std::filesystem::path& groups = "/proc/self/cgroup",
             const std::filesystem::path& root = "/sys/fs/cgroup");

inline constexpr int kThreadsMost = 4096;  // of a rank

// Returns OMP_NUM_THREADS; nothing if it is not set or no number from 1 to kThreadsMost.
std::optional<int> ThreadsOfEnvironment();

// The place of a rank: a number that is the same on all ranks of its node, and its UsableCpus there.
struct RankCpus {
  int node = 0;
  std::vector<int> cpus;
};

// Returns the threads of every compute team for the config's 0 ("auto"): OMP_NUM_THREADS where it is set.  Else a
// launcher may give all ranks of a node the same CPUs (mpirun) or each some of its own (srun --cpus-per-task), so the
// budget of a rank is the number of CPUs that the ranks of its node may use together, divided by those ranks, but at most
// the number of its own.  All teams of a run have one size: the smallest budget of the first `workers` ranks (the others
// compute nothing), at least 1.
int ThreadsByRule(const std::vector<RankCpus>& ranks, int workers);

// Returns why the ranks of some node would wait for each other's CPUs if the first `workers` ranks have `threads` each,
// and what would help; "" if they would not.
std::string CrowdingOf(const std::vector<RankCpus>& ranks, int workers, int threads);

// Sizes the OpenMP team of the calling thread (oneDNN's and our own loops share it) and flushes
// denormals on it and on every thread it starts later.  Call it at the start of every computing thread.
void ApplyThreadBudget(int threads);

// Waiting OpenMP threads spin for milliseconds by default, which makes a team of two twenty times
// slower as soon as another process holds one of its cores.  libgomp reads its settings while it is
// loaded, so this starts the program again (execv of itself) with a short spin, once; it does
// nothing when the user has set GOMP_SPINCOUNT or OMP_WAIT_POLICY.  Call it first in main.
void LimitSpinning(char** argv);

// Makes denormal inputs and results zero on this thread and those that it starts: a fading gradient must not slow
// arithmetic down a hundred times.
void FlushDenormals();

}  // namespace dtrain
