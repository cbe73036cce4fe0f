#include "framework/sim/schedule_cost.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "framework/comm/double_trees.h"
#include "framework/comm/halving_doubling.h"
#include "framework/comm/hierarchical.h"
#include "tests/sim/schedule_player.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

using Queue = NetworkModel::Queue;
using Send = SchedulePlayer::Send;

TEST(ScheduleCost, TheRingCostsItsRowOfTheTable) {
  NetworkModel network = RoundNumbers();
  for (const int64_t ranks : {2, 3, 8, 64, 2048}) {
    const int64_t n = ranks * 16 * 10;
    const int64_t bytes = n * 4;
    const ScheduleCost cost(RingSchedule, static_cast<int>(ranks), network, kGamma);
    EXPECT_EQ(cost.Of(n), 2 * (ranks - 1) * 100 + 2 * (ranks - 1) * bytes / ranks +
                              (ranks - 1) * bytes / ranks / 4)
        << ranks << " ranks";
  }
}

TEST(ScheduleCost, OrderedMovesARingsBytesInTwoRounds) {
  for (const int64_t ranks : {2, 3, 8, 64, 2048}) {
    const int64_t n = ranks * 16 * 10;
    const int64_t bytes = n * 4;
    const ScheduleCost cost(OrderedSchedule, static_cast<int>(ranks), RoundNumbers(), kGamma);
    EXPECT_EQ(cost.Of(n),
              2 * 100 + 2 * (ranks - 1) * bytes / ranks + (ranks - 1) * bytes / ranks / 4)
        << ranks << " ranks";
  }
}

// 2 alpha log2 P, 2 beta - (2 beta + gamma) / P + gamma.
TEST(ScheduleCost, HalvingDoublingCostsItsRowOfTheTable) {
  for (const int64_t ranks : {2, 4, 8, 64, 2048}) {
    const int64_t n = ranks * 16 * 10;
    const int64_t bytes = n * 4;
    const int log = static_cast<int>(std::lround(std::log2(ranks)));
    const ScheduleCost cost(HalvingDoublingSchedule, static_cast<int>(ranks), RoundNumbers(),
                            kGamma);
    EXPECT_EQ(cost.Of(n), 2 * log * 100 + 2 * bytes + bytes / 4 - (2 * bytes + bytes / 4) / ranks)
        << ranks << " ranks";
  }
}

// A rank beyond the power of two sends its whole vector and receives the result.
TEST(ScheduleCost, FoldingCostsTwoRoundsOfTheWholeVector) {
  for (const int ranks : {3, 5, 11, 63}) {
    const int core = HalvingDoublingBlocks(ranks);
    const int64_t n = core * 16 * 10;
    const ScheduleCost folded(HalvingDoublingSchedule, ranks, RoundNumbers(), kGamma);
    const ScheduleCost whole(HalvingDoublingSchedule, core, RoundNumbers(), kGamma);
    EXPECT_EQ(folded.Of(n), whole.Of(n) + 2 * (100 + 4 * n) + n) << ranks << " ranks";
  }
}

// All but the first 64 chunks of this vector are empty: the first halvings send all of it.
TEST(ScheduleCost, AShortVectorsHalvesAreItsOwn) {
  const ScheduleCost cost(HalvingDoublingSchedule, 2048, RoundNumbers(), 0);
  EXPECT_EQ(cost.Of(16 * 64), 22 * 100 + 2 * (5 * 64 + 32 + 16 + 8 + 4 + 2 + 1) * 64);
}

// Within a node all ranks exchange; N nodes halve and double slices that share the NIC.
TEST(ScheduleCost, HierarchicalCostsItsThreeParts) {
  NetworkModel network = RoundNumbers();
  network.per_node = 8;
  for (const int64_t nodes : {1, 2, 16, 256}) {
    const int64_t n = nodes * 8 * 16 * 10;
    const int64_t bytes = n * 4;
    const int log = static_cast<int>(std::lround(std::log2(nodes)));
    const ScheduleCost cost(HierarchicalSchedule, static_cast<int>(8 * nodes), network, kGamma);
    const int64_t inside = 2 * (10 + bytes / 8 / 10) + 7 * bytes / 8 / 4;
    const int64_t between =
        2 * log * 100 + 2 * (nodes - 1) * bytes / nodes + (nodes - 1) * bytes / nodes / 8 / 4;
    EXPECT_EQ(cost.Of(n), inside + between) << nodes << " nodes";
  }
}

TEST(ScheduleCost, HierarchicalIsWhatSendingMessageByMessageGives) {
  NetworkModel network = RoundNumbers();
  const std::vector<int> uneven = {0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3};
  constexpr int64_t kFloats = 16 * 960;
  const ScheduleCost cost(HierarchicalSchedule, 11, network, kGamma, uneven);
  const Nanos played = SchedulePlayer(HierarchicalSchedule, 11, network, kGamma, {kFloats}, 1,
                                      uneven, Send::kRendezvous)
                           .Finish();
  EXPECT_NEAR(cost.Of(kFloats), played, 0.02 * played);
}

// There are log P rounds each way; a rank may be early in its tree, never late.
TEST(ScheduleCost, AVectorInTheDoubleTreesPaysForItsRounds) {
  for (const int ranks : {2, 3, 4, 8, 13, 64, 2048}) {
    int log = 0;
    while ((1 << log) < ranks) ++log;
    const ScheduleCost cost(DoubleTreesSchedule, ranks, RoundNumbers(), kGamma);
    EXPECT_EQ(cost.Of(0), 2 * log * 100);
    if (ranks > 64) continue;
    constexpr int64_t kFloats = 32 * 100;
    const Nanos played =
        SchedulePlayer(DoubleTreesSchedule, ranks, RoundNumbers(), kGamma, {kFloats}).Finish();
    EXPECT_LE(played, cost.Of(kFloats) + 8) << ranks << " ranks";
    EXPECT_GE(played, 0.8 * cost.Of(kFloats)) << ranks << " ranks";
  }
}

TEST(ScheduleCost, WhatRanksMoveIsWhatTheirPlansSay) {
  NetworkModel network = RoundNumbers();
  network.per_node = 2;
  const ScheduleCost cost(RingSchedule, 6, network, kGamma);
  EXPECT_EQ(cost.blocks(), 6);
  for (const Rank rank : {0, 1, 5}) {
    EXPECT_EQ(cost.MovedBy(rank).sent, 10);
    EXPECT_EQ(cost.MovedBy(rank).received, 10);
    EXPECT_EQ(cost.MovedBy(rank).messages, 10);
    EXPECT_EQ(cost.MovedBy(rank).inside, rank % 2 == 0 ? 10 : 0);
  }
}

TEST(ScheduleCost, ItsBusyPartIsAllButTheLatencies) {
  for (const CollectiveScheduler scheduler :
       {OrderedSchedule, RingSchedule, HalvingDoublingSchedule}) {
    const ScheduleCost cost(scheduler, 8, RoundNumbers(), kGamma);
    EXPECT_EQ(cost.BusyFor(16 * 800), cost.Of(16 * 800) - cost.Of(0));
  }
  NetworkModel slow = RoundNumbers();
  slow.message_overhead_us = 1;  // 14 messages sent, 14 received
  EXPECT_EQ(ScheduleCost(RingSchedule, 8, slow, 0).BusyFor(16 * 80), 28'000);
}

TEST(ScheduleCost, OneRankPaysNothing) {
  EXPECT_EQ(ScheduleCost(RingSchedule, 1, RoundNumbers(), kGamma).Of(1000), 0);
  EXPECT_EQ(ScheduleCost(OrderedSchedule, 1, RoundNumbers(), kGamma).Of(1000), 0);
}

class ScheduleCostAgreement : public ::testing::TestWithParam<CollectiveScheduler> {
 protected:
  void ExpectAgreement(const NetworkModel& model, int ranks, int64_t n, double relative,
                       Send send = Send::kEager) {
    const auto computed = static_cast<double>(ScheduleCost(GetParam(), ranks, model, kGamma).Of(n));
    const auto played = static_cast<double>(
        SchedulePlayer(GetParam(), ranks, model, kGamma, {n}, 1, {}, send).Finish());
    EXPECT_NEAR(computed, played, relative * played + 8) << ranks << " ranks, " << n << " floats";
  }
};
INSTANTIATE_TEST_SUITE_P(Planners, ScheduleCostAgreement,
                         ::testing::Values(OrderedSchedule, RingSchedule, HalvingDoublingSchedule));

TEST_P(ScheduleCostAgreement, MessageByMessageOnUniformLinks) {
  for (const Queue queue : {Queue::kFifo, Queue::kFair}) {
    for (const int ranks : {2, 3, 4, 5, 8, 16, 33, 64}) {
      // Ranks that do not fold begin early: their messages may delay those of the fold.
      const bool folds =
          GetParam() == HalvingDoublingSchedule && !std::has_single_bit(unsigned(ranks));
      const Send send = folds ? Send::kRendezvous : Send::kEager;
      ExpectAgreement(RoundNumbers(queue), ranks, 16 * 64 * ranks, 0, send);
      ExpectAgreement(RoundNumbers(queue), ranks, 100'003, 0.01, send);  // chunks differ in size
    }
  }
}

// Checks by how much the cost of folding may be too low if no message waits for its receiver.
TEST(ScheduleCost, OfAFoldIsALowerBoundWhereMessagesLeaveEarly) {
  for (const int ranks : {3, 5, 6, 9, 33}) {
    constexpr int64_t kFloats = 16 * 32 * 100;
    const auto computed = static_cast<double>(
        ScheduleCost(HalvingDoublingSchedule, ranks, RoundNumbers(), kGamma).Of(kFloats));
    const auto played = static_cast<double>(
        SchedulePlayer(HalvingDoublingSchedule, ranks, RoundNumbers(), kGamma, {kFloats}).Finish());
    EXPECT_GE(played, computed - 8) << ranks << " ranks";
    EXPECT_LE(played, 1.75 * computed) << ranks << " ranks";
  }
}

TEST_P(ScheduleCostAgreement, WithATokenBucket) {
  NetworkModel model = RoundNumbers();
  model.between_nodes.bucket_bytes = 5000;
  model.between_nodes.line_gbit_s = 20;
  ExpectAgreement(model, 4, 16 * 400, 0);
  ExpectAgreement(model, 8, 16 * 4000, 0);
}

TEST_P(ScheduleCostAgreement, WithOverheadWhereTheWireIsSlower) {
  NetworkModel model = RoundNumbers();
  model.message_overhead_us = 0.005;
  ExpectAgreement(model, 8, 16 * 800, 0.02);
}

TEST_P(ScheduleCostAgreement, WithOverheadWhereTheProcessorIsSlower) {
  NetworkModel model = RoundNumbers();
  model.message_overhead_us = 1;
  ExpectAgreement(model, 8, 16 * 80, 0.02);
}

TEST(ScheduleCost, RanksOfANodeShareItsNic) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  const int64_t n = 16 * 16 * 10;
  const auto played =
      static_cast<double>(SchedulePlayer(OrderedSchedule, 16, model, kGamma, {n}).Finish());
  const auto computed = static_cast<double>(ScheduleCost(OrderedSchedule, 16, model, kGamma).Of(n));
  EXPECT_NEAR(computed, played, 0.01 * played);
  // A NIC sends 4 ranks x 12 peers x 640 bytes, twice; 15 x 640 bytes are added.
  EXPECT_EQ(computed, 2 * (100 + 48 * 640) + 15 * 640 / 4);
}

TEST(ScheduleCost, ARingOverNodesIsAnUpperBound) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  const int64_t n = 16 * 16 * 10;
  const Nanos computed = ScheduleCost(RingSchedule, 16, model, kGamma).Of(n);
  EXPECT_EQ(computed, 30 * (100 + 640) + 15 * 640 / 4);
  EXPECT_GE(computed, SchedulePlayer(RingSchedule, 16, model, kGamma, {n}).Finish());
}

TEST(ScheduleCost, InsideOneNodeTheNicCostsNothing) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  EXPECT_EQ(ScheduleCost(RingSchedule, 4, model, 0).Of(16 * 4 * 10), 6 * (10 + 64));
  EXPECT_EQ(ScheduleCost(RingSchedule, 4, RoundNumbers(), 0, {0, 0, 0, 0}).Of(640), 6 * (10 + 64));
}

}  // namespace
}  // namespace dtrain
