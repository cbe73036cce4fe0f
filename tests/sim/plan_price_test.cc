#include "framework/sim/plan_price.h"

#include <gtest/gtest.h>

#include <memory>

#include "framework/sim/network.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

using Queue = NetworkModel::Queue;

// Carries a plan out over a Network, message by message.
class PlanPlayer {
 public:
  PlanPlayer(Planner planner, int ranks, const NetworkModel& model, double add_ns_per_byte,
             int64_t n)
      : network_(events_, model, ranks), add_ns_per_byte_(add_ns_per_byte), n_(n) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      ranks_.push_back({.plan = planner(ranks, rank), .missing = {}});
      RankState& state = ranks_.back();
      state.missing.resize(state.plan.moves.back().round + 1);
      for (const Move& move : state.plan.moves) state.missing[move.round] += Awaited(move) ? 1 : 0;
    }
  }

  Nanos Run() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) BeginRound(static_cast<Rank>(rank));
    while (events_.RunNext()) {
    }
    return events_.now();
  }

 private:
  struct RankState {
    Plan plan;
    std::vector<int> missing;  // messages, by round
    int round = 0;
  };

  int64_t Bytes(const Move& move) const {
    return 4 * PieceOf(n_, static_cast<int>(ranks_.size()), move.piece).size();
  }
  static bool Awaited(const Move& move) {
    return move.kind == MoveKind::kFetch || move.kind == MoveKind::kReceive;
  }

  void BeginRound(Rank rank) {
    RankState& state = ranks_[rank];
    const int round = state.round;
    for (const Move& move : state.plan.moves) {
      if (move.round != round || move.kind != MoveKind::kSend) continue;
      network_.Send(rank, move.peer, Bytes(move),
                    [this, to = move.peer, round] { Arrived(to, round); });
    }
    EndRoundIfComplete(rank);
  }

  void Arrived(Rank rank, int round) {
    ranks_[rank].missing[round] -= 1;
    if (round == ranks_[rank].round) EndRoundIfComplete(rank);
  }

  void EndRoundIfComplete(Rank rank) {
    RankState& state = ranks_[rank];
    if (state.missing[state.round] > 0) return;
    double bytes_added = 0;
    for (const Move& move : state.plan.moves) {
      if (move.round == state.round && move.kind == MoveKind::kFetch) bytes_added += Bytes(move);
    }
    state.round += 1;
    const bool goes_on = state.round < static_cast<int>(state.missing.size());
    events_.After(WholeNanos(bytes_added * add_ns_per_byte_), [this, rank, goes_on] {
      if (goes_on) BeginRound(rank);
    });
  }

  EventQueue events_;
  Network network_;
  double add_ns_per_byte_;
  int64_t n_;
  std::vector<RankState> ranks_;
};

constexpr double kGamma = 0.25;

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

TEST(PlanPrice, OneRankPaysNothing) {
  EXPECT_EQ(PlanPrice(RingPlan, 1, RoundNumbers(), kGamma).Of(1000), 0);
  EXPECT_EQ(PlanPrice(OrderedPlan, 1, RoundNumbers(), kGamma).Of(1000), 0);
}

class PlanPriceAgreement : public ::testing::TestWithParam<Planner> {
 protected:
  void ExpectAgreement(const NetworkModel& model, int ranks, int64_t n, double relative) {
    const auto priced = static_cast<double>(PlanPrice(GetParam(), ranks, model, kGamma).Of(n));
    const auto played = static_cast<double>(PlanPlayer(GetParam(), ranks, model, kGamma, n).Run());
    EXPECT_NEAR(priced, played, relative * played + 8) << ranks << " ranks, " << n << " floats";
  }
};
INSTANTIATE_TEST_SUITE_P(Planners, PlanPriceAgreement, ::testing::Values(OrderedPlan, RingPlan));

TEST_P(PlanPriceAgreement, MessageByMessageOnUniformLinks) {
  for (const Queue queue : {Queue::kFifo, Queue::kFair}) {
    for (const int ranks : {2, 3, 4, 5, 8, 16, 33, 64}) {
      ExpectAgreement(RoundNumbers(queue), ranks, 16 * 5 * ranks, 0);
      ExpectAgreement(RoundNumbers(queue), ranks, 100'003, 0.01);  // pieces are not alike
    }
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
  const auto played = static_cast<double>(PlanPlayer(OrderedPlan, 16, model, kGamma, n).Run());
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
  EXPECT_GE(priced, PlanPlayer(RingPlan, 16, model, kGamma, n).Run());
}

TEST(PlanPrice, InsideOneNodeTheCardCostsNothing) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  EXPECT_EQ(PlanPrice(RingPlan, 4, model, 0).Of(16 * 4 * 10), 6 * (10 + 64));
  EXPECT_EQ(PlanPrice(RingPlan, 4, RoundNumbers(), 0, {0, 0, 0, 0}).Of(640), 6 * (10 + 64));
}

}  // namespace
}  // namespace dtrain
