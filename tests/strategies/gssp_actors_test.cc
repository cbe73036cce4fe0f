// Tests GSSP's workers and group servers one at a time: what they measure, take over, hold and count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/strategies/gssp/messages.h"
#include "tests/strategies/alone.h"

namespace dtrain::gssp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ------------------------------------------------------------------ a worker's measurements

// Returns the reported statistics after steps with these compute times; answers arrive `away` after the pushes, of
// which the server held them for `held`.
std::string StatsBehind(const std::vector<int64_t>& computed, Nanos away = 5, Nanos held = 2) {
  Alone worker("gssp", "servers: 1", 1, 0);
  Nanos now = 1000;
  for (const int64_t compute : computed) {
    EffectWriter effects = worker.At(now);
    worker.actor().OnBegin(effects);
    worker.actor().OnEnd({.samples = 4, .compute = compute}, effects);
    worker.Receives(worker.server(0), Weights{.held = held}, now + away);
    now += 1000;
  }
  return worker.ReceivesQuiescence({.steps = 1});
}

TEST(GsspWorker, MeasuresFromItsSixthStepOn) {
  EXPECT_THAT(StatsBehind({9, 9, 9, 9, 9}), HasSubstr("compute unknown, transfers unknown"));
  EXPECT_THAT(StatsBehind({9, 9, 9, 9, 9, 70}), HasSubstr("compute 70 ns, transfers 3 ns"));
}

TEST(GsspWorker, TellsTheUpperMedianOfItsLastTwentySteps) {
  std::vector<int64_t> up(5, 9), down(5, 9);
  for (int64_t i = 1; i <= 30; ++i) up.push_back(i), down.push_back(31 - i);
  EXPECT_THAT(StatsBehind(up), HasSubstr("compute 21 ns"));    // of 11 to 30
  EXPECT_THAT(StatsBehind(down), HasSubstr("compute 11 ns"));  // of 1 to 20
}

// A clock with coarse ticks, or two clocks that disagree, give no time, so that no logarithm of 0 or less is taken.
TEST(GsspWorker, TellsNoTimeThatCannotBe) {
  const std::vector<int64_t> none(6, 0), least(6, 1);
  EXPECT_THAT(StatsBehind(none, 5, 5), HasSubstr("compute 1 ns, transfers 0 ns"));
  EXPECT_THAT(StatsBehind(least, 5, 6), HasSubstr("compute 1 ns, transfers 0 ns"));
}

TEST(GsspWorker, DescribesWhatItWaitsFor) {
  Alone worker("gssp", "servers: 1", 1, 0);
  EXPECT_EQ(worker.actor().Describe(), "gssp worker 0 of group 0: clock 0, idle");
  EffectWriter effects = worker.At(0);
  worker.actor().OnBegin(effects);
  EXPECT_EQ(worker.actor().Describe(), "gssp worker 0 of group 0: clock 0, computing");
  worker.actor().OnEnd({.samples = 4}, effects);
  EXPECT_EQ(worker.actor().Describe(), "gssp worker 0 of group 0: clock 1, idle, no weights yet");
}

// ------------------------------------------------------------------ what a server takes over

// Worker 1 comes from server 1, with weights that are two updates old and a pending request.
const Regroup kAllToServer0{.number = 1, .server_of = {0, 0}};

TEST(GsspServer, AHandoverCountsTheSameBeforeAndBehindTheRegroup) {
  for (const bool early : {false, true}) {
    Alone server("gssp", "servers: 2, staleness: 5", 2, 2);
    for (const Nanos now : {10, 20, 30}) server.Receives(0, Push{4}, now);
    const Handover handover{.number = 1, .worker = 1, .behind = 2, .waiting = 0};
    if (early) server.Receives(server.server(1), handover);
    server.Receives(server.coordinator(), kAllToServer0);
    if (!early) server.Receives(server.server(1), handover);
    server.Receives(1, Push{4}, 40);
    EXPECT_THAT(server.report().staleness, ElementsAre(3, 0, 1)) << early;
  }
}

// The request went to another server, whose clock this one does not know.
TEST(GsspServer, AnswersARequestThatWasHandedOverWithoutATime) {
  Alone server("gssp", "servers: 2", 2, 2);
  server.Receives(server.coordinator(), kAllToServer0);
  EXPECT_EQ(server.Receives(server.server(1), Handover{1, 1, 0, /*waiting=*/1}, 50),
            "  s0 > w1 weights + master [0, 10)\n");
  EXPECT_EQ(server.Receives(1, Push{4}, 60).substr(0, 20), "  s0: apply arrived:");
  // The worker leaves and comes back.
  server.Receives(server.coordinator(), Regroup{2, {0, 1}});
  server.Receives(server.coordinator(), Regroup{3, {0, 0}});
  EXPECT_EQ(server.Receives(server.server(1), Handover{3, 1, 0, /*waiting=*/1}, 90),
            "  s0 > w1 weights + master [0, 10)\n");
}

// ------------------------------------------------------------------ sums and counts

TEST(GsspServer, HasAVectorForEachWorkerWhereTheyStepTogether) {
  EXPECT_THAT(Alone("gssp", "servers: 1", 2, 2).vectors(), ElementsAre("master", "acc"));
  EXPECT_THAT(Alone("gssp", "servers: 1, inside: bsp", 2, 2).vectors(),
              ElementsAre("master", "acc", "held.0", "held.1"));
  EXPECT_THAT(Alone("gssp", "servers: 1, inside: bsp, exchange: averaging", 2, 2).vectors(),
              ElementsAre("master", "held.0", "held.1"));
}

TEST(GsspServer, SendsItsSumToTheOthersAndCountsThat) {
  Alone server("gssp", "servers: 3, group_of: [0, 0, 1, 2]", 4, 4);
  EXPECT_THAT(server.Receives(0, Push{4}), Not(HasSubstr("exchange")));
  EXPECT_EQ(server.actor().Holds(), "1 gradient that the other groups have not had");
  const std::string sent = server.Receives(0, Push{4});
  EXPECT_THAT(sent, HasSubstr("  s0 > s1 exchange: gradients 2, samples 8 + acc [0, 10)\n"
                              "  s0 > s2 exchange: gradients 2, samples 8 + acc [0, 10)\n"
                              "  s0: clear acc\n"));
  EXPECT_THAT(sent, Not(HasSubstr("s0 > s0")));
  EXPECT_EQ(server.actor().Holds(), "");
  EXPECT_EQ(server.report().Total("exchanges"), 1);
  EXPECT_EQ(server.report().Total("down_transfers"), 2);
}

// With one group there is no other server to receive its sum: nothing is sent, counted, or in the way of a resume.
TEST(GsspServer, OwesNobodyAnythingWhereItHasAllWorkers) {
  Alone server("gssp", "servers: 2, group_of: [0, 0]", 2, 2);
  for (const int worker : {0, 1, 0})
    EXPECT_THAT(server.Receives(worker, Push{4}), Not(HasSubstr("acc")));
  EXPECT_EQ(server.ReceivesQuiescence({.last = true}), "");
  EXPECT_EQ(server.actor().Holds(), "");
  EXPECT_EQ(server.report().Total("exchanges"), 0);
  // The last group may remain with a sum that the other groups were to receive.
  Alone left("gssp", "servers: 2, group_of: [0, 0, 1]", 3, 3);
  left.Receives(0, Push{4});
  EXPECT_THAT(left.Receives(left.coordinator(), Regroup{1, {0, 0, 0}}), HasSubstr("clear acc"));
  EXPECT_EQ(left.actor().Holds(), "");
}

// Worker 1's new server gets the regrouping before the last weights of the worker's old group arrive.
TEST(GsspServer, TakesAnEmptiedGroupsWeightsAtTheSizeItHad) {
  Alone emptied("gssp", "servers: 3, group_of: [0, 1, 2], exchange: averaging, exchange_every: 9",
                3, 4);
  emptied.Receives(1, Push{4});
  const Regroup regroup{1, {0, 0, 2}};
  EXPECT_THAT(emptied.Receives(emptied.coordinator(), regroup), HasSubstr("s1 > s0 replica of 1"));
  Alone server("gssp", "servers: 3, group_of: [0, 1, 2], exchange: averaging", 3, 3);
  server.Receives(server.coordinator(), regroup);
  EXPECT_THAT(server.Receives(server.server(1), Replica{1}),
              HasSubstr("+ 0.3333333333333333 arrived"));
}

TEST(GsspServer, ProbesItsWorkersOneAfterTheOther) {
  Alone server("gssp", "servers: 2, group_of: [0, 1, 0]", 3, 3);
  EXPECT_THAT(server.Receives(server.coordinator(), Probe{}, 0), HasSubstr("s0 > w0 probe"));
  EXPECT_THAT(server.Receives(0, Probe{}, 70), HasSubstr("s0 > w2 probe"));
  EXPECT_THAT(server.Receives(2, Probe{}, 100), HasSubstr("alone 70 unknown 30"));
  Alone idle("gssp", "servers: 3, group_of: [0, 1, 0]", 3, 5);
  EXPECT_THAT(idle.Receives(idle.coordinator(), Probe{}, 0),
              HasSubstr("alone unknown unknown unknown"));
}

TEST(GsspServer, HoldsAStepThatIsNotWhole) {
  Alone server("gssp", "servers: 1, inside: bsp", 2, 2);
  EXPECT_EQ(server.actor().Holds(), "");
  server.Receives(1, Push{4});
  EXPECT_EQ(server.actor().Holds(), "1 gradient of a step that is not whole");
  EXPECT_THAT(server.Receives(0, Push{3}), HasSubstr("samples 7"));
}

}  // namespace
}  // namespace dtrain::gssp
