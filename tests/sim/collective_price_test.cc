#include "framework/sim/collective_price.h"

#include <gtest/gtest.h>

#include "framework/comm/double_trees.h"
#include "tests/sim/plan_player.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

constexpr int64_t kTreeChunk = 128 << 10;  // bytes

CollectivePrice Price(const std::string& name, int ranks, const CollectiveOptions& options = {}) {
  return {name, ranks, RoundNumbers(), kGamma, options};
}

TEST(CollectivePrice, OfThoseThatAreNotPipelinedIsTheirPlans) {
  for (const char* name : {"ordered", "ring", "halving_doubling", "hierarchical"}) {
    const Planner planner = CollectiveRegistry::Get("collective", name).rules(8).planner;
    const PlanPrice plan(planner, 8, RoundNumbers(), kGamma);
    for (const int64_t n : {10'000, 1'000'000}) EXPECT_EQ(Price(name, 8).Of(n), plan.Of(n)) << name;
  }
}

TEST(CollectivePrice, AShortVectorsIsThatOfTheSmallPlan) {
  const PlanPrice exchange(ExchangePlan, 4, RoundNumbers(), kGamma);
  const PlanPrice ordered(OrderedPlan, 4, RoundNumbers(), kGamma);
  const CollectivePrice price = Price("ordered", 4);
  for (const int64_t n : {0, 1, 1000, 4096}) EXPECT_EQ(price.Of(n), exchange.Of(n)) << n;
  for (const int64_t n : {4097, 100'000}) EXPECT_EQ(price.Of(n), ordered.Of(n)) << n;
  EXPECT_EQ(Price("ring", 4).Of(16), PlanPrice(RingPlan, 4, RoundNumbers(), kGamma).Of(16));
}

// Everyone would get 2047 vectors.
TEST(CollectivePrice, AmongManyRanksOnlyVeryShortVectorsAreExchanged) {
  const CollectivePrice price = Price("ordered", 2048);
  EXPECT_LT(price.Of(4096), 2 * 100 + 3 * 2047 * 64);
  EXPECT_EQ(price.Of(4), 100 + 2047 * 4 * 4 + 2047 * 4);
}

// The table's row is 2 alpha log2 P and beta + gamma; but what leaves a card is 2 n, as in every
// all-reduce of many ranks, so that b is 2 beta + gamma for a full duplex card.
TEST(CollectivePrice, LongVectorsInTheDoubleTreesCostTheirBytesAndNoRounds) {
  for (const int ranks : {4, 8, 64, 2048}) {
    const CollectivePrice price = Price("double_trees", ranks);
    const int64_t chunks = 5000;
    const auto bytes = static_cast<double>(chunks * kTreeChunk);
    EXPECT_NEAR(static_cast<double>(price.Of(chunks * kTreeChunk / 4)), bytes * (2 + kGamma),
                0.01 * bytes)
        << ranks << " ranks";
  }
}

TEST(CollectivePrice, TheDoubleTreesStartLikeATreeAndEndLikeARing) {
  NetworkModel network = RoundNumbers();
  network.between_nodes.latency_us = 50;
  const CollectivePrice trees("double_trees", 2048, network, 0);
  const CollectivePrice ring("ring", 2048, network, 0);
  EXPECT_EQ(trees.Of(0), 22 * 50'000);
  EXPECT_EQ(ring.Of(0), 4094 * 50'000);
  const auto n = static_cast<int64_t>(1) << 30;
  EXPECT_NEAR(static_cast<double>(trees.Of(n)) / static_cast<double>(ring.Of(n)), 1, 0.05);
}

// Chunk by chunk and message by message, without additions, which the price keeps out of the
// transfers and a player does not.
TEST(CollectivePrice, ChunksFollowOneAnotherThroughTheTrees) {
  for (const double latency_us : {0.1, 20.0, 400.0}) {
    NetworkModel network = RoundNumbers();
    network.between_nodes.latency_us = latency_us;
    for (const int ranks : {2, 4, 8, 13, 16}) {
      const PlanRules rules = CollectiveRegistry::Get("collective", "double_trees").rules(ranks);
      const CollectivePrice price("double_trees", ranks, network, 0);
      constexpr int64_t kFloats = kTreeChunk / 4;
      const Nanos played = PlanPlayer(rules.planner, ranks, network, 0,
                                      std::vector<int64_t>(40, kFloats), rules.lanes)
                               .Finish();
      EXPECT_NEAR(price.Of(40 * kFloats), played, 0.15 * static_cast<double>(played))
          << ranks << " ranks, " << latency_us << " us";
    }
  }
}

// With one lane each chunk pays for all its rounds.
TEST(CollectivePrice, FewerBytesAChunkAreMoreChunks) {
  const PlanPrice plan(DoubleTreesPlan, 8, RoundNumbers(), kGamma);
  const CollectivePrice price = Price("double_trees", 8, {.chunk_bytes = 1024});
  EXPECT_EQ(price.Of(256), plan.Of(256));
  EXPECT_EQ(price.Of(2560), plan.Of(256) + 9 * std::max(plan.BusyFor(256), plan.Of(256) / 6));
  EXPECT_EQ(price.Interval(2560), 10 * std::max(plan.BusyFor(256), plan.Of(256) / 6));
  EXPECT_EQ(price.TrafficOf(3, 2560).messages, 10 * plan.MovedBy(3).messages);
}

TEST(CollectivePrice, GoesByTheNodesThatTheRanksAreOnAndThoseOfThePlan) {
  NetworkModel network = RoundNumbers();
  const std::vector<int> near = {0, 0, 1, 1};
  const std::vector<int> far = {0, 1, 0, 1};
  const auto of = [&](const CollectiveOptions& options) {
    return CollectivePrice("hierarchical", 4, network, kGamma, options).Of(1 << 20);
  };
  EXPECT_EQ(of({.node_of = near}), of({.node_of = far}));
  EXPECT_LT(of({.node_of = near}), of({.node_of = near, .plan_nodes = far}));
  network.per_node = 2;
  EXPECT_EQ(of({}), of({.node_of = near}));
}

TEST(CollectivePrice, TrafficIsThePlans) {
  const CollectivePrice price = Price("ordered", 4, {.node_of = {0, 0, 1, 1}});
  const Collective::Traffic large = price.TrafficOf(1, 40'000);
  EXPECT_EQ(large.bytes_sent, 6 * 160'000 / 4);
  EXPECT_EQ(large.bytes_received, 6 * 160'000 / 4);
  EXPECT_EQ(large.bytes_inside, 2 * 160'000 / 4);
  EXPECT_EQ(large.messages, 6);
  const Collective::Traffic small = price.TrafficOf(1, 100);
  EXPECT_EQ(small.bytes_sent, 3 * 400);
  EXPECT_EQ(small.messages, 3);
  // The root of one tree, which has one child and is a leaf of the other, and who is below it.
  const CollectivePrice trees = Price("double_trees", 4);
  EXPECT_EQ(trees.TrafficOf(0, 40'000).bytes_sent, 2 * 80'000);
  EXPECT_EQ(trees.TrafficOf(2, 40'000).bytes_sent, 4 * 80'000);
}

TEST(CollectivePrice, TheIntervalIsAtMostTheTimeAndAtLeastALanesPart) {
  NetworkModel bucket = RoundNumbers();
  bucket.between_nodes.bucket_bytes = 1 << 20;
  for (const char* name : {"ordered", "double_trees"}) {
    const CollectivePrice price(name, 8, bucket, kGamma);
    for (const int64_t n : {100, 100'000, 10'000'000}) EXPECT_LE(price.Interval(n), price.Of(n));
  }
  EXPECT_EQ(Price("ring", 8).Interval(0), 14 * 100 / 4);
  const PlanPrice ring(RingPlan, 8, RoundNumbers(), kGamma);
  EXPECT_EQ(Price("ring", 8).Interval(16 * 800), ring.BusyFor(16 * 800));
}

}  // namespace
}  // namespace dtrain
