// Tests which workers of GSSP share a group: the partition, which servers groups keep, and which workers are misplaced.
#include "framework/strategies/gssp/grouping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/seeds.h"

namespace dtrain::gssp {
namespace {

double CostOf(const std::vector<double>& times, const std::vector<int>& group_of) {
  const int groups = *std::max_element(group_of.begin(), group_of.end()) + 1;
  double cost = 0;
  for (int group = 0; group < groups; ++group) {
    double sum = 0, squares = 0, count = 0;
    for (size_t w = 0; w < times.size(); ++w) {
      if (group_of[w] != group) continue;
      sum += std::log(times[w]);
      squares += std::log(times[w]) * std::log(times[w]);
      ++count;
    }
    cost += squares - sum * sum / count;
  }
  return cost;
}

// Returns the least cost over all partitions of the workers, neighbours in speed or not.
double LeastCost(const std::vector<double>& times, int groups, int least) {
  const auto workers = times.size();
  double best = 1e300;
  std::vector<int> group_of(workers, 0);
  for (int64_t code = 0; code < std::llround(std::pow(groups, workers)); ++code) {
    int64_t rest = code;
    std::vector<int> count(groups, 0);
    for (size_t w = 0; w < workers; ++w, rest /= groups) {
      group_of[w] = static_cast<int>(rest % groups);
      ++count[group_of[w]];
    }
    if (*std::min_element(count.begin(), count.end()) >= least) {
      best = std::min(best, CostOf(times, group_of));
    }
  }
  return best;
}

TEST(Grouping, IsTheBestOfAllPartitions) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Draws draws(seed);
    std::vector<double> times(draws.Between(2, 7));
    for (double& time : times) time = static_cast<double>(draws.Between(1, 40));
    const int groups = static_cast<int>(draws.Between(1, std::min<int64_t>(3, times.size())));
    const int least = static_cast<int>(times.size()) >= 2 * groups ? 2 : 1;
    const std::vector<int> group_of = GroupBySpeed(times, {.groups = groups});
    EXPECT_NEAR(CostOf(times, group_of), LeastCost(times, groups, least), 1e-9)
        << fmt::format("{} in {} groups: {}", times, groups, group_of);
  }
}

TEST(Grouping, FindsFourSpeedsAndTakesNoMoreGroupsThanItNeeds) {
  const std::vector<double> times = {1, 2, 3, 4, 1.05, 2.1, 2.9, 4.2};
  const std::vector<int> expected = {0, 1, 2, 3, 0, 1, 2, 3};
  EXPECT_EQ(GroupBySpeed(times, {.groups = 4}), expected);
  EXPECT_EQ(GroupBySpeed(times, {.groups_max = 4}), expected);
  EXPECT_EQ(GroupBySpeed({1, 1.1, 1.2, 1.05}, {.groups_max = 4}), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(GroupBySpeed({1, 1, 2, 2}, {.groups_max = 4}), (std::vector<int>{0, 0, 1, 1}));
  // One fast or one slow worker is enough for a second group, which then has two workers.
  EXPECT_EQ(GroupBySpeed({2, 1, 2, 2}, {.groups_max = 2}), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(GroupBySpeed({1, 1, 2, 1}, {.groups_max = 2}), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(GroupBySpeed({1, 1, 2, 2}, {.groups = 1}), (std::vector<int>{0, 0, 0, 0}));
}

TEST(Grouping, OfEqualSizeCutsTheOrderOfSpeeds) {
  EXPECT_EQ(GroupBySpeed({9, 1, 1, 1, 2, 8}, {.groups = 3, .equal_size = true}),
            (std::vector<int>{2, 0, 0, 1, 1, 2}));
}

using Servers = std::vector<int64_t>;
using Who = std::vector<bool>;

TEST(KeepServers, GroupsKeepTheServerOfMostOfTheirWorkers) {
  // Two groups have exchanged their places in the order of speeds.
  EXPECT_EQ(KeepServers({1, 1, 0, 0}, {0, 0, 1, 1}), (Servers{0, 0, 1, 1}));
  EXPECT_EQ(KeepServers({3, 3, 2, 2, 1, 1, 0, 0}, {0, 0, 1, 1, 2, 2, 3, 3}),
            (Servers{0, 0, 1, 1, 2, 2, 3, 3}));
  // One of three workers has left the group.
  EXPECT_EQ(KeepServers({1, 1, 0, 0, 0}, {0, 0, 0, 1, 1}), (Servers{0, 0, 1, 1, 1}));
  // Both groups took as many workers from each old group: the faster one gets the first server.
  EXPECT_EQ(KeepServers({0, 1, 0, 1}, {0, 0, 1, 1}), (Servers{0, 1, 0, 1}));
}

TEST(KeepServers, GroupsThatComeFromElsewhereTakeWhatIsFree) {
  // All workers of server 2 went to the two other groups; a group of three takes the server of two.
  EXPECT_EQ(KeepServers({0, 0, 0, 1, 1}, {0, 2, 2, 4, 4}), (Servers{2, 2, 2, 4, 4}));
  // Both groups have most of their workers from server 5: the group with more of them keeps it.
  EXPECT_EQ(KeepServers({0, 0, 1, 1, 1, 0}, {5, 5, 5, 5, 5, 1}), (Servers{1, 1, 5, 5, 5, 1}));
}

TEST(Misplaced, LiesNearerToAnotherGroup) {
  EXPECT_EQ(Misplaced({1, 1, 4, 4}, {0, 0, 1, 1}, {}), (Who{false, false, false, false}));
  EXPECT_EQ(Misplaced({1, 3.9, 4, 4, 1}, {0, 0, 1, 1, 0}, {}),
            (Who{false, true, false, false, false}));
  EXPECT_EQ(Misplaced({1, 3.9, 4, 4, 1}, {7, 7, 2, 2, 7}, {}),
            (Who{false, true, false, false, false}));
}

// Worker 3's group needs a second worker: worker 2, or another that is as fast.
TEST(Misplaced, IsNobodyWhomTheGroupNeeds) {
  EXPECT_EQ(Misplaced({1, 1, 1, 4}, {0, 0, 1, 1}, {}), (Who{false, false, false, false}));
  EXPECT_EQ(Misplaced({1.1, 1.05, 1, 4}, {0, 0, 1, 1}, {}), (Who{false, false, false, false}));
  EXPECT_EQ(Misplaced({1, 1, 1, 1, 1, 4}, {0, 0, 0, 1, 1, 1}, {.equal_size = true}),
            (Who{false, false, false, false, false, false}));
}

TEST(Misplaced, IsWhoeverHasABetterReplacement) {
  EXPECT_EQ(Misplaced({1, 2, 1, 4}, {0, 0, 1, 1}, {}), (Who{false, true, true, false}));
  EXPECT_EQ(Misplaced({1, 2, 1, 1, 1, 4}, {0, 0, 0, 1, 1, 1}, {.equal_size = true}),
            (Who{false, true, false, true, true, false}));
  // Worker 1 fits the group of 4 and 5, but neither they nor 2 and 3 are closer to worker 0.
  EXPECT_EQ(Misplaced({5, 20, 1, 1, 20, 20}, {0, 0, 1, 1, 2, 2}, {}), Who(6, false));
}

}  // namespace
}  // namespace dtrain::gssp
