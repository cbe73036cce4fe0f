#include "framework/device/cpu/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <numeric>

namespace dtrain {
namespace {

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
