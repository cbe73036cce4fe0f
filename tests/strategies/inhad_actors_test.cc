// Tests inhad's node aggregators and Scheduler one at a time: factors of sums, timers, and the supervision of nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/strategies/inhad/messages.h"
#include "tests/strategies/alone.h"

namespace dtrain::inhad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Workers are actors 0 and 1, the server is actor 2, the node aggregators are actors 3 and 4.
constexpr ActorId kServer = 2, kNode = 3;

TEST(NodeAggregator, WaitsSoManyMillisecondsBetweenTwoINs) {
  Alone node("inhad", "in_interval: 2", 2, kNode);
  EXPECT_EQ(node.Receives(0, Submit{0, 0, 4}),
            "  n0: sum.0 = arrived\n"
            "  n0 > w0 taken\n"
            "  n0 > s0 in: 1, low 0 computing, 0 pending\n"
            "  n0: timer 0 in 2000000 ns\n");
  node.Receives(0, Submit{1, 1, 4});
  EXPECT_EQ(node.Receives(kServer, Noted{}), "");
  EXPECT_EQ(node.ReceivesTimer(0),
            "  n0 > s0 in: 2, low 1 computing, 0 pending\n"
            "  n0: timer 0 in 2000000 ns\n");
}

// With n = 1 the bound is 3, and there are four sums: versions 1, 5 and 9 share one of them.
TEST(NodeAggregator, TakesASumOfSeveralVersionsForOneOfTheirMean) {
  Alone node("inhad", "n: 1, late: keep", 2, kNode);
  EXPECT_THAT(node.vectors(), ElementsAre("weights", "out", "sum.0", "sum.1", "sum.2", "sum.3"));
  node.Receives(0, Submit{1, 1, 4});
  node.Receives(0, Submit{5, 5, 4});
  EXPECT_THAT(node.Receives(0, Submit{9, 9, 4}), HasSubstr("sum.1 += arrived"));
  EXPECT_THAT(node.Receives(kServer, Pull{1, 9}), HasSubstr("out += 0.25 sum.1"));
  EXPECT_EQ(node.report().Total("merged"), 2);
  // A bound of 1 gives two sums.
  Alone two("inhad", "n: 1, s_max: 1, late: keep", 2, kNode);
  two.Receives(0, Submit{1, 1, 4});
  two.Receives(0, Submit{3, 3, 4});
  EXPECT_EQ(two.report().Total("merged"), 1);
}

// Two gradients have version 0 and one has version 3; the node is at version 3: (2 * 3 + 0) / 3.
TEST(NodeAggregator, DividesItsSumByTheMeanStaleness) {
  Alone node("inhad", "n: 1, modulate: mean", 2, kNode);
  node.Receives(0, Submit{0, 0, 4});
  node.Receives(0, Submit{0, 3, 4});
  node.Receives(0, Submit{3, 3, 4});
  EXPECT_THAT(node.Receives(kServer, Pull{1, 3}), HasSubstr("out += 0.5 sum.0"));
}

// An update needs one gradient (n = 2) and gets three: their mean at lr, or at three times lr.
TEST(InhadServer, ScalesTheRateByTheNumberOfGradients) {
  for (const auto& [scale, factor] : {std::pair("one", "1"), std::pair("share", "3")}) {
    Alone server("inhad", std::string("n: 2, scale: ") + scale, 2, kServer);
    server.Receives(kNode, In{.submitted = 3});
    EXPECT_THAT(server.Receives(kNode, Grad{.round = 1, .count = 3, .samples = 12}),
                HasSubstr(std::string("apply sum: gradient factor 0.3333, lr factor ") + factor +
                          ", samples 12"));
  }
}

// A node that is given up loses its sums and sends nothing more; when it dies, no gradient is counted as lost twice or
// found again.
TEST(NodeAggregator, ThatIsGivenUpLosesWhatItHas) {
  Alone node("inhad", "n: 1", 2, kNode, true);
  node.Receives(0, Submit{0, 0, 4});
  node.Receives(0, Submit{1, 1, 4});
  EXPECT_EQ(node.Receives(kServer, GiveUp{0}), "  n0: clear sum.0\n  n0: clear sum.1\n");
  EXPECT_EQ(node.Receives(kServer, Noted{}), "");
  EXPECT_EQ(node.report().Total("lost"), 2);
  EXPECT_EQ(node.Receives(0, Submit{1, 1, 4}), "  n0 > w0 taken\n");
  node.actor().OnDeath();
  EXPECT_EQ(node.report().Total("lost"), 3);
}

TEST(InhadRun, StopsAtADeathOnlyWhereNobodyIsGivenUp) {
  EXPECT_EQ(MakeStrategy("{name: inhad}")->StopsAtDeath(), "");
  EXPECT_EQ(MakeStrategy("{name: inhad, pull_timeout: 0.5}")->StopsAtDeath(), "");
  EXPECT_THAT(MakeStrategy("{name: inhad, pull_timeout: 0}")->StopsAtDeath(),
              HasSubstr("pull_timeout is 0"));
}

// ------------------------------------------------------------------ supervision of nodes

TEST(InhadScheduler, LooksAfterNodesOnlyWhereTheyMayDieAndOneWouldBeLeft) {
  const In in{.submitted = 0, .low_computing = 0};
  const std::string look = "  s0: timer 1 in 30000000000 ns\n";
  EXPECT_EQ(Alone("inhad", "n: 1", 2, kServer, true).Receives(kNode, in),
            look + "  s0 > n0 noted\n");
  EXPECT_EQ(Alone("inhad", "n: 1", 2, kServer).Receives(kNode, in), "  s0 > n0 noted\n");
  EXPECT_EQ(Alone("inhad", "pull_timeout: 0", 2, kServer, true).Receives(kNode, in),
            "  s0 > n0 noted\n");
  EXPECT_EQ(Alone("inhad", "n: 1", 1, /*id=*/1, true).Receives(/*node=*/2, in),
            "  s0 > n0 noted\n");
}

// A node without news is probed, answers, and is probed again, a hundred times.
TEST(InhadScheduler, EndsToLookWhereThereAreOnlyAnswers) {
  Alone server("inhad", "n: 1", 2, kServer, true);
  In in{.submitted = 0, .low_computing = 0};
  int looks = 0;
  bool more = true;
  for (server.Receives(kNode, in); more && looks < 1000; ++looks) {
    more = server.ReceivesTimer(1).find("timer 1") != std::string::npos;
    for (const ActorId node : {kNode, kNode + 1}) {
      EXPECT_THAT(server.Receives(node, in), Not(HasSubstr("give up")));
    }
  }
  EXPECT_EQ(looks, 101);
  EXPECT_THAT(server.Receives(kNode, in), Not(HasSubstr("timer")));
  in.submitted = 1;
  EXPECT_THAT(server.Receives(kNode, in), HasSubstr("timer 1"));
}

// Neither node answers: one is given up after one probe; the other is kept, since it is the last.
TEST(InhadScheduler, NeverGivesUpTheLastNode) {
  Alone server("inhad", "n: 1", 2, kServer, true);
  server.Receives(kNode, In{});
  server.ReceivesTimer(1);  // the server has heard from node 0 since the beginning
  EXPECT_THAT(server.ReceivesTimer(1), HasSubstr("s0 > n1 give up: node 1"));
  for (int look = 0; look < 5; ++look) {
    EXPECT_THAT(server.ReceivesTimer(1), Not(HasSubstr("give up")));
  }
  EXPECT_THAT(server.actor().Describe(), HasSubstr("nodes {1} are given up"));
}

// ------------------------------------------------------------------ recipients of weights

Grad GradOf(int64_t round, int64_t base) {
  return {.round = round, .count = 1, .samples = 4, .bases = {base, 1}};
}

// All updates come from node 1.  Node 0 gets the weights when it has sent something, but not while a round is open,
// whose update it would miss.
TEST(InhadScheduler, SendsANodeThatWasLeftOutItsWeightsBetweenRounds) {
  Alone server("inhad", "n: 2, broadcast: pulled, pipelined: true", 2, kServer);
  const std::string sends = "  s0 > n0 weights: version ";
  const In idle{.submitted = 0, .low_computing = 0};
  EXPECT_THAT(server.Receives(kNode + 1, In{1, 0, 0}),
              HasSubstr("s0 > n1 pull: round 1, version 0"));
  EXPECT_THAT(server.Receives(kNode + 1, GradOf(1, 0)), Not(HasSubstr(sends)));
  EXPECT_THAT(server.Receives(kNode, idle), HasSubstr(sends + "1"));
  EXPECT_THAT(server.Receives(kNode, idle),
              Not(HasSubstr(sends)));  // the node has these weights already
  server.Receives(kNode + 1, In{2, 1, 1});
  server.Receives(kNode + 1, GradOf(2, 1));
  EXPECT_THAT(server.Receives(kNode + 1, In{3, 2, 2}),
              HasSubstr("s0 > n1 pull: round 3, version 2"));
  EXPECT_THAT(server.Receives(kNode, idle), Not(HasSubstr(sends)));
  EXPECT_THAT(server.Receives(kNode + 1, GradOf(3, 2)), HasSubstr(sends + "3"));
}

// ------------------------------------------------------------------ admission by a node's own broadcast

// Both nodes are sent version 1, and only node 0 has received it.
Alone ServerWithASlowNode(const std::string& keys) {
  Alone server("inhad", "n: 2, " + keys, 2, kServer);
  server.Receives(kNode, In{1, 0, 0});
  EXPECT_THAT(server.Receives(kNode, GradOf(1, 0)),
              AllOf(HasSubstr("s0 > n0 weights: version 1"), HasSubstr("n1 weights: version 1")));
  server.Receives(kNode, Have{1});
  return server;
}

TEST(InhadScheduler, OpensARoundWithoutANodeThatReceivesWeights) {
  Alone server = ServerWithASlowNode("late: keep");
  EXPECT_EQ(server.Receives(kNode + 1, In{1, 0, 0}), "  s0 > n1 noted\n");
  EXPECT_EQ(server.Receives(kNode, In{2, 1, 1}),
            "  s0 > n0 noted\n"
            "  s0 > n0 pull: round 2, version 1\n");
  // Version 2 would queue up behind version 1.
  EXPECT_THAT(server.Receives(kNode, GradOf(2, 1)),
              AllOf(HasSubstr("s0 > n0 weights: version 2"), Not(HasSubstr("s0 > n1"))));
  EXPECT_THAT(server.actor().Describe(), HasSubstr("nodes {0, 1} have no new weights yet"));
  // Node 1 is pulled before it gets the newest weights, or it would receive weights for ever.
  EXPECT_EQ(server.Receives(kNode + 1, Have{1}), "  s0 > n1 pull: round 3, version 2\n");
  EXPECT_THAT(server.Receives(kNode + 1, GradOf(3, 0)),
              AllOf(HasSubstr("s0 > n1 weights: version 3"), Not(HasSubstr("s0 > n0"))));
}

TEST(InhadScheduler, LetsANodeJoinAnOpenRound) {
  Alone server = ServerWithASlowNode("late: keep");
  server.Receives(kNode + 1, In{1, 0, 0});
  server.Receives(kNode, In{2, 1, 1});
  EXPECT_EQ(server.Receives(kNode + 1, Have{1}), "  s0 > n1 pull: round 2, version 1\n");
  EXPECT_THAT(server.Receives(kNode, GradOf(2, 1)), Not(HasSubstr("apply")));
  EXPECT_THAT(server.Receives(kNode + 1, GradOf(2, 0)),
              AllOf(HasSubstr("s0 > n0 weights: version 2"), HasSubstr("n1 weights: version 2")));
}

// With a bound of 1, a round at version 1 would make node 1's gradient of version 0 too old.
TEST(InhadScheduler, WaitsForANodeThatReceivesWeightsWhereTheBoundAsksForIt) {
  Alone server = ServerWithASlowNode("s_max: 1");
  server.Receives(kNode + 1, In{1, 0, 0});
  EXPECT_EQ(server.Receives(kNode, In{2, 1, 1}), "  s0 > n0 noted\n");
  EXPECT_EQ(server.Receives(kNode + 1, Have{1}), "");  // it still computes with version 0
  EXPECT_EQ(server.Receives(kNode + 1, In{2, 1, 0}),
            "  s0 > n1 noted\n"
            "  s0 > n0 pull: round 2, version 1\n"
            "  s0 > n1 pull: round 2, version 1\n");
}

}  // namespace
}  // namespace dtrain::inhad
