#include "framework/sim/plan_price.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "framework/comm/double_trees.h"
#include "framework/comm/halving_doubling.h"
#include "framework/comm/hierarchical.h"
#include "tests/sim/plan_player.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

using Queue = NetworkModel::Queue;
using Send = PlanPlayer::Send;

TEST(PlanPrice, TheRingCostsItsRowOfTheTable) {
  NetworkModel network = RoundNumbers();
  for (const int64_t ranks : {2, 3, 8, 64, 2048}) {
    const int64_t n = ranks * 16 * 10;
    const int64_t bytes = n * 4;
    const PlanPrice price(RingPlan, static_cast<int>(ranks), network, kGamma);
    EXPECT_EQ(price.Of(n), 2 * (ranks - 1) * 100 + 2 * (ranks - 1) * bytes / ranks +
                               (ranks - 1) * bytes / ranks / 4)
        << ranks << " ranks";
  }
}

TEST(PlanPrice, OrderedMovesARingsBytesInTwoRounds) {
  for (const int64_t ranks : {2, 3, 8, 64, 2048}) {
    const int64_t n = ranks * 16 * 10;
    const int64_t bytes = n * 4;
    const PlanPrice price(OrderedPlan, static_cast<int>(ranks), RoundNumbers(), kGamma);
    EXPECT_EQ(price.Of(n),
              2 * 100 + 2 * (ranks - 1) * bytes / ranks + (ranks - 1) * bytes / ranks / 4)
        << ranks << " ranks";
  }
}

// 2 alpha log2 P, 2 beta - (2 beta + gamma) / P + gamma.
TEST(PlanPrice, HalvingDoublingCostsItsRowOfTheTable) {
  for (const int64_t ranks : {2, 4, 8, 64, 2048}) {
    const int64_t n = ranks * 16 * 10;
    const int64_t bytes = n * 4;
    const int log = static_cast<int>(std::lround(std::log2(ranks)));
    const PlanPrice price(HalvingDoublingPlan, static_cast<int>(ranks), RoundNumbers(), kGamma);
    EXPECT_EQ(price.Of(n), 2 * log * 100 + 2 * bytes + bytes / 4 - (2 * bytes + bytes / 4) / ranks)
        << ranks << " ranks";
  }
}

// A rank beyond a power of two hands over the whole vector and gets it back.
TEST(PlanPrice, FoldingCostsTwoRoundsOfTheWholeVector) {
  for (const int ranks : {3, 5, 11, 63}) {
    const int core = HalvingDoublingPieces(ranks);
    const int64_t n = core * 16 * 10;
    const PlanPrice folded(HalvingDoublingPlan, ranks, RoundNumbers(), kGamma);
    const PlanPrice whole(HalvingDoublingPlan, core, RoundNumbers(), kGamma);
    EXPECT_EQ(folded.Of(n), whole.Of(n) + 2 * (100 + 4 * n) + n) << ranks << " ranks";
  }
}

// All but the first 64 pieces of this one are empty: the first halvings hand over all of it.
TEST(PlanPrice, AShortVectorsHalvesAreItsOwn) {
  const PlanPrice price(HalvingDoublingPlan, 2048, RoundNumbers(), 0);
  EXPECT_EQ(price.Of(16 * 64), 22 * 100 + 2 * (5 * 64 + 32 + 16 + 8 + 4 + 2 + 1) * 64);
}

// Inside: everyone to everyone; between N nodes halving and doubling of slices that share the card.
TEST(PlanPrice, HierarchicalCostsItsThreeParts) {
  NetworkModel network = RoundNumbers();
  network.per_node = 8;
  for (const int64_t nodes : {1, 2, 16, 256}) {
    const int64_t n = nodes * 8 * 16 * 10;
    const int64_t bytes = n * 4;
    const int log = static_cast<int>(std::lround(std::log2(nodes)));
    const PlanPrice price(HierarchicalPlan, static_cast<int>(8 * nodes), network, kGamma);
    const int64_t inside = 2 * (10 + bytes / 8 / 10) + 7 * bytes / 8 / 4;
    const int64_t between =
        2 * log * 100 + 2 * (nodes - 1) * bytes / nodes + (nodes - 1) * bytes / nodes / 8 / 4;
    EXPECT_EQ(price.Of(n), inside + between) << nodes << " nodes";
  }
}

TEST(PlanPrice, HierarchicalIsWhatSendingMessageByMessageGives) {
  NetworkModel network = RoundNumbers();
  const std::vector<int> uneven = {0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3};
  constexpr int64_t kFloats = 16 * 960;
  const PlanPrice price(HierarchicalPlan, 11, network, kGamma, uneven);
  const Nanos played =
      PlanPlayer(HierarchicalPlan, 11, network, kGamma, {kFloats}, 1, uneven, Send::kRendezvous)
          .Finish();
  EXPECT_NEAR(price.Of(kFloats), played, 0.02 * played);
}

// Log rounds each way; a rank may be early in its tree, never late.
TEST(PlanPrice, AVectorInTheDoubleTreesPaysForItsRounds) {
  for (const int ranks : {2, 3, 4, 8, 13, 64, 2048}) {
    int log = 0;
    while ((1 << log) < ranks) ++log;
    const PlanPrice price(DoubleTreesPlan, ranks, RoundNumbers(), kGamma);
    EXPECT_EQ(price.Of(0), 2 * log * 100);
    if (ranks > 64) continue;
    constexpr int64_t kFloats = 32 * 100;
    const Nanos played =
        PlanPlayer(DoubleTreesPlan, ranks, RoundNumbers(), kGamma, {kFloats}).Finish();
    EXPECT_LE(played, price.Of(kFloats) + 8) << ranks << " ranks";
    EXPECT_GE(played, 0.8 * price.Of(kFloats)) << ranks << " ranks";
  }
}

TEST(PlanPrice, WhatRanksMoveIsWhatTheirPlansSay) {
  NetworkModel network = RoundNumbers();
  network.per_node = 2;
  const PlanPrice price(RingPlan, 6, network, kGamma);
  EXPECT_EQ(price.pieces(), 6);
  for (const Rank rank : {0, 1, 5}) {
    EXPECT_EQ(price.MovedBy(rank).sent, 10);
    EXPECT_EQ(price.MovedBy(rank).received, 10);
    EXPECT_EQ(price.MovedBy(rank).messages, 10);
    EXPECT_EQ(price.MovedBy(rank).inside, rank % 2 == 0 ? 10 : 0);
  }
}

TEST(PlanPrice, ItsBusyPartIsAllButTheLatencies) {
  for (const Planner planner : {OrderedPlan, RingPlan, HalvingDoublingPlan}) {
    const PlanPrice price(planner, 8, RoundNumbers(), kGamma);
    EXPECT_EQ(price.BusyFor(16 * 800), price.Of(16 * 800) - price.Of(0));
  }
  NetworkModel slow = RoundNumbers();
  slow.message_overhead_us = 1;  // 14 messages sent, 14 received
  EXPECT_EQ(PlanPrice(RingPlan, 8, slow, 0).BusyFor(16 * 80), 28'000);
}

TEST(PlanPrice, OneRankPaysNothing) {
  EXPECT_EQ(PlanPrice(RingPlan, 1, RoundNumbers(), kGamma).Of(1000), 0);
  EXPECT_EQ(PlanPrice(OrderedPlan, 1, RoundNumbers(), kGamma).Of(1000), 0);
}

class PlanPriceAgreement : public ::testing::TestWithParam<Planner> {
 protected:
  void ExpectAgreement(const NetworkModel& model, int ranks, int64_t n, double relative,
                       Send send = Send::kEager) {
    const auto priced = static_cast<double>(PlanPrice(GetParam(), ranks, model, kGamma).Of(n));
    const auto played = static_cast<double>(
        PlanPlayer(GetParam(), ranks, model, kGamma, {n}, 1, {}, send).Finish());
    EXPECT_NEAR(priced, played, relative * played + 8) << ranks << " ranks, " << n << " floats";
  }
};
INSTANTIATE_TEST_SUITE_P(Planners, PlanPriceAgreement,
                         ::testing::Values(OrderedPlan, RingPlan, HalvingDoublingPlan));

TEST_P(PlanPriceAgreement, MessageByMessageOnUniformLinks) {
  for (const Queue queue : {Queue::kFifo, Queue::kFair}) {
    for (const int ranks : {2, 3, 4, 5, 8, 16, 33, 64}) {
      // Ranks that do not fold begin early: what they send may be in the way of what is folded.
      const bool folds = GetParam() == HalvingDoublingPlan && !std::has_single_bit(unsigned(ranks));
      const Send send = folds ? Send::kRendezvous : Send::kEager;
      ExpectAgreement(RoundNumbers(queue), ranks, 16 * 64 * ranks, 0, send);
      ExpectAgreement(RoundNumbers(queue), ranks, 100'003, 0.01, send);  // pieces are not alike
    }
  }
}

// By how much the price of folding may be too low, if no message waits for its receiver.
TEST(PlanPrice, OfAFoldIsALowerBoundWhereMessagesLeaveEarly) {
  for (const int ranks : {3, 5, 6, 9, 33}) {
    constexpr int64_t kFloats = 16 * 32 * 100;
    const auto priced = static_cast<double>(
        PlanPrice(HalvingDoublingPlan, ranks, RoundNumbers(), kGamma).Of(kFloats));
    const auto played = static_cast<double>(
        PlanPlayer(HalvingDoublingPlan, ranks, RoundNumbers(), kGamma, {kFloats}).Finish());
    EXPECT_GE(played, priced - 8) << ranks << " ranks";
    EXPECT_LE(played, 1.75 * priced) << ranks << " ranks";
  }
}

TEST_P(PlanPriceAgreement, WithATokenBucket) {
  NetworkModel model = RoundNumbers();
  model.between_nodes.bucket_bytes = 5000;
  model.between_nodes.line_gbit_s = 20;
  ExpectAgreement(model, 4, 16 * 400, 0);
  ExpectAgreement(model, 8, 16 * 4000, 0);
}

TEST_P(PlanPriceAgreement, WithOverheadWhereTheWireIsSlower) {
  NetworkModel model = RoundNumbers();
  model.message_overhead_us = 0.005;
  ExpectAgreement(model, 8, 16 * 800, 0.02);
}

TEST_P(PlanPriceAgreement, WithOverheadWhereTheProcessorIsSlower) {
  NetworkModel model = RoundNumbers();
  model.message_overhead_us = 1;
  ExpectAgreement(model, 8, 16 * 80, 0.02);
}

TEST(PlanPrice, RanksOfANodeShareItsCard) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  const int64_t n = 16 * 16 * 10;
  const auto played = static_cast<double>(PlanPlayer(OrderedPlan, 16, model, kGamma, {n}).Finish());
  const auto priced = static_cast<double>(PlanPrice(OrderedPlan, 16, model, kGamma).Of(n));
  EXPECT_NEAR(priced, played, 0.01 * played);
  // 4 ranks x 12 peers x 640 bytes out of a card, twice; 15 x 640 bytes to add.
  EXPECT_EQ(priced, 2 * (100 + 48 * 640) + 15 * 640 / 4);
}

TEST(PlanPrice, ARingOverNodesIsAnUpperBound) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  const int64_t n = 16 * 16 * 10;
  const Nanos priced = PlanPrice(RingPlan, 16, model, kGamma).Of(n);
  EXPECT_EQ(priced, 30 * (100 + 640) + 15 * 640 / 4);
  EXPECT_GE(priced, PlanPlayer(RingPlan, 16, model, kGamma, {n}).Finish());
}

TEST(PlanPrice, InsideOneNodeTheCardCostsNothing) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  EXPECT_EQ(PlanPrice(RingPlan, 4, model, 0).Of(16 * 4 * 10), 6 * (10 + 64));
  EXPECT_EQ(PlanPrice(RingPlan, 4, RoundNumbers(), 0, {0, 0, 0, 0}).Of(640), 6 * (10 + 64));
}

}  // namespace
}  // namespace dtrain
