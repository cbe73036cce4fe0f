#include "framework/comm/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/comm/collective.h"
#include "tests/comm/plan_checker.h"
#include "tests/comm/plan_traffic.h"

namespace dtrain {
namespace {

TEST(Plan, EveryCollectivesPlanGivesEveryRankEverySumOnce) {
  for (const auto& [name, entry] : CollectiveRegistry::All()) {
    if (entry.planner == nullptr) continue;
    for (int world = 2; world <= 33; ++world) {
      EXPECT_EQ(PlanChecker(entry.planner, world).Fault(false), "") << name << ", " << world;
    }
  }
}

TEST(Plan, OrderedGivesEveryRankTheCanonicalSum) {
  for (int world = 2; world <= 33; ++world) {
    EXPECT_EQ(PlanChecker(OrderedPlan, world).Fault(true), "") << world << " ranks";
  }
}

TEST(Plan, ExchangeGivesEveryRankTheCanonicalSum) {
  for (int world = 2; world <= 33; ++world) {
    EXPECT_EQ(PlanChecker(ExchangePlan, world).Fault(true), "") << world << " ranks";
  }
}

TEST(Plan, RingIsNotCanonicalAndTheCheckerSeesIt) {
  EXPECT_NE(PlanChecker(RingPlan, 3).Fault(true), "");
}

// The checker is a test's only witness: each kind of fault must be seen.
Plan WithoutLastMove(int world, Rank rank) {
  Plan plan = OrderedPlan(world, rank);
  if (rank == 1) plan.moves.pop_back();
  return plan;
}
Plan WithoutASend(int world, Rank rank) {
  Plan plan = OrderedPlan(world, rank);
  if (rank == 1) {
    std::erase_if(plan.moves,
                  [](const Move& m) { return m.kind == MoveKind::kSend && m.round == 0; });
  }
  return plan;
}
Plan WithoutTheSum(int world, Rank rank) {
  Plan plan = OrderedPlan(world, rank);
  std::erase_if(plan.moves, [](const Move& m) { return m.kind == MoveKind::kSum; });
  return plan;
}
Plan FetchingBackwards(int world, Rank rank) {
  Plan plan = OrderedPlan(world, rank);
  std::reverse(plan.moves.begin(), plan.moves.begin() + world - 1);
  return plan;
}

TEST(Plan, CheckerSeesFaults) {
  EXPECT_NE(PlanChecker(WithoutLastMove, 4).Fault(true), "");
  EXPECT_EQ(PlanChecker(WithoutASend, 4).Fault(true), "rank 0: waits forever");
  EXPECT_EQ(PlanChecker(WithoutTheSum, 4).Fault(false), "rank 0: not every rank once: 0");
  EXPECT_THAT(PlanChecker(FetchingBackwards, 4).Fault(true),
              ::testing::EndsWith("does not fetch in rank order"));
}

// 2 (P-1)/P n both ways; 2 rounds with 2 (P-1) messages, or 2 (P-1) rounds with one each.
TEST(Plan, PricesFollowTheFormulas) {
  for (int world = 2; world <= 33; ++world) {
    const int64_t n = 16 * 7 * world;
    const int64_t bytes = 2 * (world - 1) * n / world * 4;
    for (Rank rank = 0; rank < world; ++rank) {
      for (const Planner planner : {OrderedPlan, RingPlan}) {
        const PlanTraffic price = TrafficOf(planner(world, rank), n);
        EXPECT_EQ(price.bytes_sent, bytes);
        EXPECT_EQ(price.bytes_received, bytes);
        EXPECT_EQ(price.messages, 2 * (world - 1));
        EXPECT_EQ(price.additions, (world - 1) * n / world);
      }
      EXPECT_EQ(TrafficOf(OrderedPlan(world, rank), n).rounds, 2);
      EXPECT_EQ(TrafficOf(RingPlan(world, rank), n).rounds, 2 * (world - 1));
      const PlanTraffic exchange = TrafficOf(ExchangePlan(world, rank), n);
      EXPECT_EQ(exchange.rounds, 1);
      EXPECT_EQ(exchange.bytes_sent, (world - 1) * n * 4);
      EXPECT_EQ(exchange.additions, (world - 1) * n);
    }
  }
}

TEST(Plan, EmptyPiecesCostNothing) {
  const PlanTraffic owner = TrafficOf(OrderedPlan(4, 0), 5);  // all of it is rank 0's piece
  EXPECT_EQ(owner.bytes_received, 3 * 5 * 4);
  EXPECT_EQ(owner.bytes_sent, 3 * 5 * 4);
  const PlanTraffic other = TrafficOf(OrderedPlan(4, 2), 5);
  EXPECT_EQ(other.messages, 1);
  EXPECT_EQ(other.bytes_sent, 5 * 4);
  EXPECT_EQ(TrafficOf(OrderedPlan(4, 2), 0).rounds, 0);
}

TEST(Plan, PiecesCoverTheVectorAtCacheLines) {
  for (const int64_t n : {0, 1, 15, 16, 17, 1000, 4096, 1'000'003}) {
    for (const int pieces : {1, 2, 3, 5, 8, 33}) {
      int64_t at = 0;
      for (int piece = 0; piece < pieces; ++piece) {
        const Range range = PieceOf(n, pieces, piece);
        EXPECT_EQ(range.begin, at);
        EXPECT_TRUE(range.begin % 16 == 0 || range.begin == n);
        EXPECT_LE(range.size(), PieceOf(n, pieces, 0).size());
        at = range.end;
      }
      EXPECT_EQ(at, n);
    }
  }
}

TEST(Plan, ScratchIsWhatOneRoundFetches) {
  EXPECT_EQ(OrderedPlan(5, 2).fetches_max(), 4);
  EXPECT_EQ(RingPlan(5, 2).fetches_max(), 1);
  EXPECT_EQ(ExchangePlan(5, 2).fetches_max(), 4);
}

}  // namespace
}  // namespace dtrain
