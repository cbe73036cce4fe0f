#include "framework/sim/collective_cost.h"

#include <gtest/gtest.h>

#include "framework/comm/double_trees.h"
#include "tests/sim/schedule_player.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

constexpr int64_t kTreeChunk = 128 << 10;  // bytes

CollectiveCost Cost(const std::string& name, int ranks, const CollectiveOptions& options = {}) {
  return {name, ranks, RoundNumbers(), kGamma, options};
}

TEST(CollectiveCost, OfThoseThatAreNotPipelinedIsTheirPlans) {
  for (const char* name : {"ordered", "ring", "halving_doubling", "hierarchical"}) {
    const CollectiveScheduler scheduler =
        CollectiveRegistry::Get("collective", name).rules(8).scheduler;
    const ScheduleCost schedule(scheduler, 8, RoundNumbers(), kGamma);
    for (const int64_t n : {10'000, 1'000'000})
      EXPECT_EQ(Cost(name, 8).Of(n), schedule.Of(n)) << name;
  }
}

TEST(CollectiveCost, AShortVectorsIsThatOfTheSmallPlan) {
  const ScheduleCost exchange(ExchangeSchedule, 4, RoundNumbers(), kGamma);
  const ScheduleCost ordered(OrderedSchedule, 4, RoundNumbers(), kGamma);
  const CollectiveCost cost = Cost("ordered", 4);
  for (const int64_t n : {0, 1, 1000, 4096}) EXPECT_EQ(cost.Of(n), exchange.Of(n)) << n;
  for (const int64_t n : {4097, 100'000}) EXPECT_EQ(cost.Of(n), ordered.Of(n)) << n;
  EXPECT_EQ(Cost("ring", 4).Of(16), ScheduleCost(RingSchedule, 4, RoundNumbers(), kGamma).Of(16));
}

// Every rank would receive 2047 vectors.
TEST(CollectiveCost, AmongManyRanksOnlyVeryShortVectorsAreExchanged) {
  const CollectiveCost cost = Cost("ordered", 2048);
  EXPECT_LT(cost.Of(4096), 2 * 100 + 3 * 2047 * 64);
  EXPECT_EQ(cost.Of(4), 100 + 2047 * 4 * 4 + 2047 * 4);
}

// The table's row is 2 alpha log2 P and beta + gamma.  But 2 n bytes leave a NIC, as in every all-reduce of many ranks,
// so that b is 2 beta + gamma for a full-duplex NIC.
TEST(CollectiveCost, LongVectorsInTheDoubleTreesCostTheirBytesAndNoRounds) {
  for (const int ranks : {4, 8, 64, 2048}) {
    const CollectiveCost cost = Cost("double_trees", ranks);
    const int64_t chunks = 5000;
    const auto bytes = static_cast<double>(chunks * kTreeChunk);
    EXPECT_NEAR(static_cast<double>(cost.Of(chunks * kTreeChunk / 4)), bytes * (2 + kGamma),
                0.01 * bytes)
        << ranks << " ranks";
  }
}

TEST(CollectiveCost, TheDoubleTreesStartLikeATreeAndEndLikeARing) {
  NetworkModel network = RoundNumbers();
  network.between_nodes.latency_us = 50;
  const CollectiveCost trees("double_trees", 2048, network, 0);
  const CollectiveCost ring("ring", 2048, network, 0);
  EXPECT_EQ(trees.Of(0), 22 * 50'000);
  EXPECT_EQ(ring.Of(0), 4094 * 50'000);
  const auto n = static_cast<int64_t>(1) << 30;
  EXPECT_NEAR(static_cast<double>(trees.Of(n)) / static_cast<double>(ring.Of(n)), 1, 0.05);
}

// Compared chunk by chunk and message by message, without additions: the cost model keeps them apart from the
// transfers, the player does not.
TEST(CollectiveCost, ChunksFollowOneAnotherThroughTheTrees) {
  for (const double latency_us : {0.1, 20.0, 400.0}) {
    NetworkModel network = RoundNumbers();
    network.between_nodes.latency_us = latency_us;
    for (const int ranks : {2, 4, 8, 13, 16}) {
      const CollectiveRules rules =
          CollectiveRegistry::Get("collective", "double_trees").rules(ranks);
      const CollectiveCost cost("double_trees", ranks, network, 0);
      constexpr int64_t kFloats = kTreeChunk / 4;
      const Nanos played = SchedulePlayer(rules.scheduler, ranks, network, 0,
                                          std::vector<int64_t>(40, kFloats), rules.lanes)
                               .Finish();
      EXPECT_NEAR(cost.Of(40 * kFloats), played, 0.15 * static_cast<double>(played))
          << ranks << " ranks, " << latency_us << " us";
    }
  }
}

// With one lane each chunk takes the time of all its rounds.
TEST(CollectiveCost, FewerBytesAChunkAreMoreChunks) {
  const ScheduleCost schedule(DoubleTreesSchedule, 8, RoundNumbers(), kGamma);
  const CollectiveCost cost = Cost("double_trees", 8, {.chunk_bytes = 1024});
  EXPECT_EQ(cost.Of(256), schedule.Of(256));
  EXPECT_EQ(cost.Of(2560),
            schedule.Of(256) + 9 * std::max(schedule.BusyFor(256), schedule.Of(256) / 6));
  EXPECT_EQ(cost.Interval(2560), 10 * std::max(schedule.BusyFor(256), schedule.Of(256) / 6));
  EXPECT_EQ(cost.TrafficOf(3, 2560).messages, 10 * schedule.MovedBy(3).messages);
}

TEST(CollectiveCost, GoesByTheNodesThatTheRanksAreOnAndThoseOfThePlan) {
  NetworkModel network = RoundNumbers();
  const std::vector<int> near = {0, 0, 1, 1};
  const std::vector<int> far = {0, 1, 0, 1};
  const auto of = [&](const CollectiveOptions& options) {
    return CollectiveCost("hierarchical", 4, network, kGamma, options).Of(1 << 20);
  };
  EXPECT_EQ(of({.node_of = near}), of({.node_of = far}));
  EXPECT_LT(of({.node_of = near}), of({.node_of = near, .plan_nodes = far}));
  network.per_node = 2;
  EXPECT_EQ(of({}), of({.node_of = near}));
}

TEST(CollectiveCost, TrafficIsThatOfTheSchedule) {
  const CollectiveCost cost = Cost("ordered", 4, {.node_of = {0, 0, 1, 1}});
  const Collective::Traffic large = cost.TrafficOf(1, 40'000);
  EXPECT_EQ(large.bytes_sent, 6 * 160'000 / 4);
  EXPECT_EQ(large.bytes_received, 6 * 160'000 / 4);
  EXPECT_EQ(large.bytes_inside, 2 * 160'000 / 4);
  EXPECT_EQ(large.messages, 6);
  const Collective::Traffic small = cost.TrafficOf(1, 100);
  EXPECT_EQ(small.bytes_sent, 3 * 400);
  EXPECT_EQ(small.messages, 3);
  // Rank 0 is the root of one tree, in which it has one child, and a leaf of the other; rank 2 is below it.
  const CollectiveCost trees = Cost("double_trees", 4);
  EXPECT_EQ(trees.TrafficOf(0, 40'000).bytes_sent, 2 * 80'000);
  EXPECT_EQ(trees.TrafficOf(2, 40'000).bytes_sent, 4 * 80'000);
}

TEST(CollectiveCost, TheIntervalIsAtMostTheTimeAndAtLeastALanesPart) {
  NetworkModel bucket = RoundNumbers();
  bucket.between_nodes.bucket_bytes = 1 << 20;
  for (const char* name : {"ordered", "double_trees"}) {
    const CollectiveCost cost(name, 8, bucket, kGamma);
    for (const int64_t n : {100, 100'000, 10'000'000}) EXPECT_LE(cost.Interval(n), cost.Of(n));
  }
  EXPECT_EQ(Cost("ring", 8).Interval(0), 14 * 100 / 4);
  const ScheduleCost ring(RingSchedule, 8, RoundNumbers(), kGamma);
  EXPECT_EQ(Cost("ring", 8).Interval(16 * 800), ring.BusyFor(16 * 800));
}

}  // namespace
}  // namespace dtrain
