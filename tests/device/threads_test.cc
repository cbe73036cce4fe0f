#include "framework/device/cpu/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <numeric>
#include <vector>

#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

// Returns CPUs first..first + count - 1.
std::vector<int> Cpus(int first, int count) {
  std::vector<int> cpus(count);
  std::iota(cpus.begin(), cpus.end(), first);
  return cpus;
}

TEST(ThreadsByRule, OneRankTakesAllCpus) { EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 24)}}, 1), 24); }

TEST(ThreadsByRule, RanksThatShareTheirCpusDivideThem) {
  EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 24)}, {0, Cpus(0, 24)}, {0, Cpus(0, 24)}}, 3), 8);
}

TEST(ThreadsByRule, RanksWithCpusOfTheirOwnDoNotDivideThemAgain) {
  EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 8)}, {0, Cpus(8, 8)}, {0, Cpus(16, 8)}}, 3), 8);
}

TEST(ThreadsByRule, NoTeamIsLargerThanItsRanksCpus) {
  EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 2)}, {0, Cpus(2, 6)}}, 2), 2);
  EXPECT_EQ(ThreadsByRule({{0, Cpus(2, 6)}, {0, Cpus(0, 2)}}, 2), 2);
}

TEST(ThreadsByRule, TheCpusOfAnotherNodeAreOthers) {
  // Both nodes number their CPUs from 0: each rank has four CPUs, not two.
  EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 4)}, {1, Cpus(0, 4)}}, 2), 4);
}

TEST(ThreadsByRule, TheEnvironmentComesFirst) {
  const auto with = [](const char* value) {
    const ScopedVariable variable("OMP_NUM_THREADS", value);
    return ThreadsByRule({{0, Cpus(0, 24)}}, 1);
  };
  EXPECT_EQ(with("3"), 3);
  EXPECT_EQ(with("5,2"), 5) << "by level of nesting";
  for (const char* no_number : {"", "0", "-1", "many", "3x", "99999"}) {
    EXPECT_EQ(with(no_number), 24) << no_number;
  }
}

TEST(CrowdingOf, CountsWhatTheRanksOfANodeMayUseTogether) {
  std::vector<RankCpus> bound;  // by srun, one CPU each
  for (int rank = 0; rank < 16; ++rank) bound.push_back({0, Cpus(rank, 1)});
  EXPECT_EQ(CrowdingOf(bound, 16, 1), "");
  EXPECT_THAT(CrowdingOf(bound, 16, 2), HasSubstr("32 threads of 16 workers share 16 cores"));
  EXPECT_EQ(CrowdingOf(bound, 8, 2), "") << "eight ranks are servers";
  const std::vector<RankCpus> many(40, {0, Cpus(0, 2)});
  EXPECT_THAT(CrowdingOf(many, 40, 1), HasSubstr("40 ranks share 2 cores"));
  EXPECT_EQ(CrowdingOf(std::vector<RankCpus>(8, {0, Cpus(0, 2)}), 8, 1), "");
  EXPECT_THAT(CrowdingOf({{0, Cpus(0, 2)}}, 1, 1000),
              HasSubstr("1000 threads of 1 worker share 2 cores"));
  EXPECT_EQ(CrowdingOf({}, 0, 1), "");
  EXPECT_EQ(CrowdingOf({{0, {}}}, 1, 8), "") << "CPUs that cannot be read";
}

TEST(CpuQuota, IsTheLeastOfTheGroupsAround) {
  const TempFolder root;
  const auto write = [&](const char* file, const char* text) { root.Write(file, text); };
  write("groups", "1:cpu:/elsewhere\n0::/pod/container\n");
  const auto quota = [&] { return CpuQuota(root / "groups", root.path()); };
  EXPECT_EQ(quota(), 0) << "no file";
  write("pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  write("pod/cpu.max", "350000 100000\n");
  EXPECT_EQ(quota(), 3);
  write("pod/container/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 1) << "half a CPU";
  write("cpu.max", "200000 100000\n");
  write("groups", "0::/\n");
  EXPECT_EQ(quota(), 2) << "a container's own view";
  write("groups", "1:cpu:/\n");
  EXPECT_EQ(quota(), 2);
}

TEST(ThreadsByRule, TheFullestNodeDecides) {
  EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 8)}, {1, Cpus(0, 8)}, {1, Cpus(0, 8)}}, 3), 4);
}

TEST(ThreadsByRule, AServerTakesItsShareButHasNoTeam) {
  // Beside two workers the server is a third rank that needs cores.  Alone on a small node it
  // limits no worker.
  EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 12)}, {0, Cpus(0, 12)}, {0, Cpus(0, 12)}}, 2), 4);
  EXPECT_EQ(ThreadsByRule({{0, Cpus(0, 12)}, {0, Cpus(0, 12)}, {2, Cpus(0, 1)}}, 2), 6);
}

TEST(ThreadsByRule, MoreRanksThanCpusTakeOneEach) {
  EXPECT_EQ(ThreadsByRule({{0, {0}}, {0, {0}}, {0, {0}}}, 3), 1);
  EXPECT_EQ(ThreadsByRule({{0, {}}}, 1), 1);
}

TEST(UsableCpus, AreThoseOfTheAffinityMask) {
  const std::vector<int> all = UsableCpus();
  ASSERT_FALSE(all.empty());
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(all.back(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCpus(), std::vector<int>{all.back()});
  ::sched_setaffinity(0, sizeof(before), &before);
  EXPECT_EQ(UsableCpus(), all);
}

}  // namespace
}  // namespace dtrain
