#include "framework/sim/sparse_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "framework/comm/sparse_collective.h"
#include "framework/core/error.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/virtual_transport.h"

namespace dtrain {
namespace {

using Queue = NetworkModel::Queue;

constexpr int64_t kAlpha = 100;  // as in RoundNumbers; a byte takes 1 ns there

int64_t Log2(int64_t ranks) { return std::llround(std::ceil(std::log2(ranks))); }

// k entries on each rank, spread evenly over all regions as the cost model assumes.  With `same` all ranks have equal
// positions.
class Selections {
 public:
  Selections(int ranks, int64_t k, bool same) : n_(k * ranks * 4) {
    positions_.resize(static_cast<size_t>(ranks));
    values_.resize(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = i * ranks * 4 + (same ? 0 : rank);
        positions_[static_cast<size_t>(rank)].push_back(static_cast<int32_t>(at));
        values_[static_cast<size_t>(rank)].push_back(1.0f);
      }
    }
  }
  int64_t n() const { return n_; }
  SparseEntries Of(Rank rank) const {
    return {positions_[static_cast<size_t>(rank)], values_[static_cast<size_t>(rank)]};
  }

 private:
  int64_t n_;
  std::vector<std::vector<int32_t>> positions_;
  std::vector<std::vector<float>> values_;
};

// Runs the real collective over a simulated network.
class Player {
 public:
  Player(const std::string& name, int ranks, const NetworkModel& model,
         const std::vector<int>& node_of = {})
      : ranks_(ranks), world_(model, ranks, node_of) {
    CollectiveOptions options{.node_of = NodesInOrder(ranks, model.per_node)};
    if (!node_of.empty()) options.node_of = node_of;
    for (Rank rank = 0; rank < ranks; ++rank) {
      collectives_.push_back(MakeSparseCollective(name, world_.at(rank), options));
    }
  }

  // Returns the time of one more sum.
  Nanos Sum(int64_t k, const Selections& selections) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      At(rank).Start(0, selections.n(), k, selections.Of(rank));
    }
    const Nanos end = world_.Run(
        [this] {
          bool moved = false;
          for (const auto& collective : collectives_) moved |= collective->Progress();
          return moved;
        },
        [this] {
          bool idle = true;
          for (const auto& collective : collectives_) idle &= collective->Idle();
          return idle;
        });
    return end - std::exchange(last_end_, end);
  }

  SparseCollective& At(Rank rank) { return *collectives_[static_cast<size_t>(rank)]; }

 private:
  int ranks_;
  VirtualWorld world_;
  std::vector<std::unique_ptr<SparseCollective>> collectives_;
  Nanos last_end_ = 0;
};

TEST(SparseCost, GatherCostsTheLogarithmOfStartUpsAndEverybodysEntries) {
  constexpr int64_t kEntries = 1000;
  for (const int64_t ranks : {2, 3, 8, 33, 64, 2048}) {
    const SparseCost cost("gather", static_cast<int>(ranks), RoundNumbers(), kGamma);
    EXPECT_EQ(cost.Of({.entries = kEntries, .k = 17}),
              kAlpha * Log2(ranks) + (ranks - 1) * (8 * kEntries + 4))
        << ranks << " ranks";
  }
}

TEST(SparseCost, GTopKCostsItsTreeTwice) {
  constexpr int64_t kAsked = 1000;
  for (const int64_t ranks : {2, 4, 8, 64, 2048}) {
    const SparseCost cost("gtopk", static_cast<int>(ranks), RoundNumbers(), kGamma);
    EXPECT_EQ(cost.Of({.entries = 5000, .k = kAsked}),
              2 * Log2(ranks) * (kAlpha + 8 * kAsked + 4) + Log2(ranks) * 8 * kAsked / 4)
        << ranks << " ranks";
  }
  const SparseCost three("gtopk", 3, RoundNumbers(), kGamma),
      four("gtopk", 4, RoundNumbers(), kGamma);
  EXPECT_EQ(three.Of({.entries = 10, .k = 10}), four.Of({.entries = 10, .k = 10}));
}

TEST(SparseCost, OkTopKCostsSixKWhateverTheRanks) {
  constexpr int64_t kAsked = 4096;
  for (const int64_t ranks : {2, 4, 8, 64, 2048}) {
    const SparseCost cost("oktopk", static_cast<int>(ranks), RoundNumbers(), kGamma);
    const int64_t logs = Log2(ranks);
    const int64_t part = 8 * kAsked / ranks;
    const int64_t every_call = kAlpha * ((ranks + 2) / 4) + (ranks - 1) * (part + 4) +
                               (ranks - 1) * part / 4 + 2 * kAlpha * logs +
                               (ranks - 1) * (4 + part);
    const int64_t regions = logs * (kAlpha + 8 * ranks);
    const int64_t threshold = 4 * logs * (kAlpha + 2048);
    const SparseLoad load{.entries = kAsked, .k = kAsked};
    const auto at = [&](int64_t call) {
      return cost.Of({.entries = kAsked, .k = kAsked, .call = call});
    };
    EXPECT_EQ(at(1), every_call) << ranks << " ranks";
    EXPECT_EQ(at(0), every_call + regions + threshold);
    EXPECT_EQ(at(32), every_call + threshold);
    EXPECT_EQ(at(64), at(0));
    EXPECT_NEAR(cost.Of(load), every_call + regions / 64.0 + threshold / 32.0, 1);
  }
}

TEST(SparseCost, OneRankPaysNothingAndAnUnknownNameIsAnError) {
  for (const std::string& name : SparseCollectiveNames()) {
    const SparseCost cost(name, 1, RoundNumbers(), kGamma);
    EXPECT_EQ(cost.Of({.entries = 100, .k = 100}), 0);
    EXPECT_EQ(cost.MovedBy({.entries = 100, .k = 100}).bytes_sent, 0);
  }
  EXPECT_THROW(SparseCost("ring", 2, RoundNumbers(), kGamma), UsageError);
}

// Compares the real collectives over the simulated network with the cost, call by call.
class SparseCostAgreement : public ::testing::TestWithParam<std::string> {
 protected:
  struct Times {
    double costed;
    double played;
  };
  static constexpr int64_t kEntries = 480;  // a multiple of all smaller world sizes

  std::vector<Times> TimesOf(const NetworkModel& model, int ranks) {
    const SparseCost cost(GetParam(), ranks, model, 0);
    const Selections selections(ranks, kEntries, GetParam() == "oktopk");
    Player player(GetParam(), ranks, model);
    std::vector<Times> times;
    for (int64_t call = 0; call < 34; ++call) {
      const SparseLoad load{.entries = kEntries, .k = kEntries, .call = call};
      times.push_back({static_cast<double>(cost.Of(load)),
                       static_cast<double>(player.Sum(kEntries, selections))});
    }
    return times;
  }
};
INSTANTIATE_TEST_SUITE_P(Collectives, SparseCostAgreement,
                         ::testing::Values("gather", "gtopk", "oktopk"),
                         [](const auto& info) { return info.param; });

TEST_P(SparseCostAgreement, MessageByMessageOnUniformLinks) {
  for (const int ranks : {2, 4, 8, 16}) {
    for (const Times& time : TimesOf(RoundNumbers(), ranks)) {
      EXPECT_NEAR(time.costed, time.played, 0.001 * time.played + 8) << ranks << " ranks";
    }
  }
}

// If the world is no power of two, the next messages of fast ranks share NICs with the periodic sums.
TEST_P(SparseCostAgreement, IsABoundForAnyRanksAndQueues) {
  for (const int ranks : {3, 5, 6, 12}) {
    for (const Queue queue : {Queue::kFifo, Queue::kFair}) {
      Times all = {0, 0};
      for (const Times& time : TimesOf(RoundNumbers(queue), ranks)) {
        EXPECT_GE(time.costed, 0.8 * time.played) << ranks << " ranks";
        EXPECT_LE(time.costed, 1.35 * time.played) << ranks << " ranks";
        all.costed += time.costed;
        all.played += time.played;
      }
      EXPECT_GE(all.costed, 0.94 * all.played) << ranks << " ranks";
    }
  }
}

TEST_P(SparseCostAgreement, RanksOfANodeShareItsNic) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  for (const int ranks : {8, 16}) {
    for (const Times& time : TimesOf(model, ranks)) {
      EXPECT_GE(time.costed, 0.95 * time.played) << ranks << " ranks";
      EXPECT_LE(time.costed, 1.35 * time.played) << ranks << " ranks";
    }
  }
}

TEST_P(SparseCostAgreement, WhatIsMovedIsWhatTheRanksCount) {
  for (const int ranks : {2, 3, 8, 16}) {
    NetworkModel model = RoundNumbers();
    model.per_node = ranks % 4 == 0 ? 4 : 1;
    const SparseCost cost(GetParam(), ranks, model, 0);
    const Selections selections(ranks, kEntries, GetParam() == "oktopk");
    Player player(GetParam(), ranks, model);
    for (int call = 0; call < 64; ++call) player.Sum(kEntries, selections);
    Collective::Traffic all;
    int64_t periodic = 0;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Collective::Traffic traffic = player.At(rank).traffic();
      all.bytes_sent += traffic.bytes_sent;
      all.bytes_received += traffic.bytes_received;
      all.bytes_inside += traffic.bytes_inside;
      all.messages += traffic.messages;
      periodic += player.At(rank).periodic_bytes_received();
    }
    const SparseCost::Moved moved = cost.MovedBy({.entries = kEntries, .k = kEntries});
    const double sums = 64.0 * ranks;
    EXPECT_EQ(all.bytes_sent, all.bytes_received);
    EXPECT_NEAR(moved.bytes_sent * sums, static_cast<double>(all.bytes_sent), 1);
    EXPECT_NEAR(moved.messages * sums, static_cast<double>(all.messages), 1);
    EXPECT_NEAR(moved.periodic_bytes * sums, static_cast<double>(periodic), 1);
    EXPECT_NEAR(moved.bytes_inside * sums, static_cast<double>(all.bytes_inside),
                0.01 * static_cast<double>(all.bytes_inside))
        << ranks << " ranks";
  }
}

TEST(SparseCost, InsideOneNodeTheNicCostsNothing) {
  NetworkModel model = RoundNumbers();
  model.per_node = 4;
  // Latency 10 ns, ten bytes per ns.
  EXPECT_EQ(SparseCost("gather", 4, model, 0).Of({.entries = 100, .k = 100}),
            std::llround(2 * 10 + 3 * 80.4));
  EXPECT_EQ(SparseCost("gather", 4, RoundNumbers(), 0, {0, 0, 0, 0}).Of({.entries = 100, .k = 100}),
            std::llround(2 * 10 + 3 * 80.4));
}

// The words of oktopk.md 3 for thousands of ranks: those of gather grow with the number of ranks, those of gtopk with
// its logarithm, those of oktopk do not grow.
TEST(SparseCost, TwoThousandRanks) {
  const SparseLoad load{.entries = 100'000, .k = 100'000};
  const auto words = [&](const std::string& name) {
    const SparseCost cost(name, 2048, RoundNumbers(), kGamma);
    return cost.MovedBy(load).bytes_sent / 4 / 100'000;
  };
  EXPECT_NEAR(words("gather"), 2 * 2047, 0.1);
  EXPECT_NEAR(words("gtopk"), 4, 0.01);  // in the mean: the root's are 4 log2 P
  EXPECT_NEAR(words("oktopk"), 4, 0.1);
}

}  // namespace
}  // namespace dtrain
