// Thousands of simulated runs with faults: stopped ranks, slow steps, late and overtaking messages, NaNs, deaths.
// Every run must end, account for every gradient and keep its bounds, and synchronous runs equal the undisturbed ones
// to the bit.  A failure prints the shortest schedule that still fails.
//
// support/seeds.h has the number of seeds; these tests use a tenth of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "tests/faults/faulty_run.h"

namespace dtrain {
namespace {

class SimulatedFaults : public ::testing::TestWithParam<const char*> {};

TEST_P(SimulatedFaults, NoPromiseIsBroken) {
  for (const int64_t seed : SeedRange(std::max<int64_t>(Seeds() / 10, 1))) {
    const FaultyRun run(GetParam(), static_cast<uint64_t>(seed));
    const FaultSchedule drawn = run.Draw();
    const std::string broken = run.Broken(drawn);
    if (broken.empty()) continue;
    const FaultSchedule least =
        Shrink(drawn, [&](const FaultSchedule& schedule) { return !run.Broken(schedule).empty(); });
    FAIL() << run.Describe() << ": " << broken << "\nIt also breaks with " << least.size() << " of "
           << drawn.size() << " faults (" << run.Broken(least) << "):" << Describe(least);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, SimulatedFaults,
                         ::testing::Values("ps_bsp", "ps_ssp", "ps_dssp", "ps_asp", "ps_asp+topk",
                                           "ps_ssp+topk", "inhad", "gssp", "gssp+gdtopk",
                                           "allreduce", "naive", "single", "wfbp", "wfbp+topk",
                                           "mgwfbp"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '+', '_');
                           return name;
                         });

// Checks a guarantee that no strategy gives: the shrunk schedule has only the fault that breaks it.
TEST(Shrink, LeavesTheFaultThatMatters) {
  int64_t found = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const FaultyRun run("ps_asp", seed);
    // Without a bound, a slow or stopped worker falls behind.
    const int64_t usual = static_cast<int64_t>(run.Run({}).result.protocol.staleness.size());
    const auto fails = [&](const FaultSchedule& schedule) {
      const FaultyRun::Outcome outcome = run.Run(schedule);
      return outcome.result.end.finite &&
             static_cast<int64_t>(outcome.result.protocol.staleness.size()) > usual + 3;
    };
    const FaultSchedule drawn = run.Draw();
    if (!fails(drawn)) continue;
    ++found;
    const FaultSchedule least = Shrink(drawn, fails);
    ASSERT_FALSE(least.empty());
    EXPECT_TRUE(fails(least));
    for (size_t i = 0; i < least.size(); ++i) {
      FaultSchedule fewer = least;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      EXPECT_FALSE(fails(fewer)) << run.Describe() << Describe(least);
    }
  }
  EXPECT_GT(found, 5);
}

TEST(Shrink, FindsTwoFaultsThatBreakSomethingTogether) {
  FaultSchedule schedule(8, Fault{Fault::Kind::kStop});
  for (size_t i = 0; i < schedule.size(); ++i) schedule[i].who = static_cast<int64_t>(i);
  schedule[5].number = 40;
  schedule[5].size = 8;
  const auto has = [](const FaultSchedule& some, int64_t who, double size) {
    return std::ranges::any_of(some,
                               [&](const Fault& f) { return f.who == who && f.size >= size; });
  };
  const FaultSchedule least = Shrink(
      schedule, [&](const FaultSchedule& some) { return has(some, 2, 0) && has(some, 5, 1); });
  ASSERT_EQ(least.size(), 2u);
  EXPECT_EQ(least[0].who, 2);
  EXPECT_EQ(least[1].who, 5);
  EXPECT_EQ(least[1].number, 0);
  EXPECT_EQ(least[1].size, 1);
}

// A scheduled fault happens in the run as it is described.
TEST(SimulatedFaults, AStoppedRankHoldsUpTheOthersAndALateMessageWhatFollowsIt) {
  const FaultyRun run("allreduce", 3);
  const Nanos usual = run.Run({}).result.time;
  Fault stop{Fault::Kind::kStop};
  stop.who = 1;
  stop.at = ToSeconds(usual) / 2;
  stop.size = 7;
  EXPECT_GE(run.Run({stop}).result.time, usual + FromSeconds(6.9));
  Fault late{Fault::Kind::kDelay};
  const FaultyRun served("ps_bsp", 3);
  late.who = 0;
  late.to = 2;
  late.number = 5;
  late.size = 7;
  EXPECT_EQ(Describe({late}), "\n  message 5 from rank 0 to rank 2 arrives 7 s later");
}

}  // namespace
}  // namespace dtrain
