#include "framework/sim/sim_sparse.h"

#include <gtest/gtest.h>

#include "tests/comm/sparse_cases.h"
#include "tests/comm/sparse_world.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

// Ranks that start sums at different times.
class SimulatedSparse : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int kRanks = 5;

  SimulatedSparse()
      : cost_(GetParam(), kRanks, RoundNumbers(), 0.25),
        sums_(events_, cost_, SimSparseSums::Kind::kNumbers,
              [this](Rank rank) { woken_.push_back(rank); }) {
    for (Rank rank = 0; rank < kRanks; ++rank) ends_.push_back(sums_.Connect(rank));
  }
  void Run() {
    while (events_.RunNext()) {
    }
  }

  EventQueue events_;
  SparseCost cost_;
  std::vector<Rank> woken_;
  SimSparseSums sums_;
  std::vector<std::unique_ptr<SparseCollective>> ends_;
};
INSTANTIATE_TEST_SUITE_P(Collectives, SimulatedSparse,
                         ::testing::Values("gather", "gtopk", "oktopk"),
                         [](const auto& info) { return info.param; });

TEST_P(SimulatedSparse, SumsHaveTheBitsOfRealRanks) {
  SparseWorld real(GetParam(), kRanks);
  Draws draws(1);
  for (int call = 0; call < 70; ++call) {
    const SparseCase drawn = DrawSelections(draws, kRanks, 1000, 40, false);
    const auto wanted = real.Sum(3, drawn.n, drawn.k, drawn.mine);
    for (Rank rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(ends_[rank]->Start(3, drawn.n, drawn.k, drawn.mine[rank].entries()), call);
    }
    Run();
    for (Rank rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(Summed::Of(ends_[rank]->Of(call)), wanted[rank]) << "call " << call;
      ends_[rank]->Release(call);
      EXPECT_EQ(ends_[rank]->traffic().bytes_sent, real.at(rank).traffic().bytes_sent);
    }
  }
}

TEST_P(SimulatedSparse, OneSumAfterTheOtherEachAtItsCost) {
  const std::vector<Selected> mine(kRanks, {{1, 2, 7}, {3.0f, 4.0f, 5.0f}});
  Nanos ends_at = 500;  // when the last rank starts
  for (int64_t call = 0; call < 3; ++call) {
    ends_at += cost_.Of({.entries = 3, .k = 2, .call = call});
  }
  for (Rank rank = 0; rank < kRanks; ++rank) {
    events_.At(rank * 125, [this, rank, &mine] {
      for (int sum = 0; sum < 3; ++sum) ends_[rank]->Start(0, 10, 2, mine[rank].entries());
    });
  }
  events_.At(ends_at - 1, [this] {
    EXPECT_TRUE(ends_[4]->Done(1));
    EXPECT_FALSE(ends_[4]->Done(2));
    EXPECT_FALSE(ends_[4]->Idle());
  });
  Run();
  EXPECT_EQ(events_.now(), ends_at);
  EXPECT_TRUE(ends_[0]->Idle());
  EXPECT_EQ(woken_.size(), 3u * kRanks);
}

TEST_P(SimulatedSparse, GhostsAreAnsweredWithSizes) {
  const SparseEntries ghost = {{static_cast<const int32_t*>(nullptr), 100},
                               {static_cast<const float*>(nullptr), 100}};
  SimSparseSums sums(events_, cost_, SimSparseSums::Kind::kGhosts, [](Rank) {});
  std::vector<std::unique_ptr<SparseCollective>> ends;
  for (Rank rank = 0; rank < kRanks; ++rank) ends.push_back(sums.Connect(rank));
  for (int call = 0; call < 2; ++call) {
    for (const auto& end : ends) EXPECT_EQ(end->Start(0, 10'000, 100, ghost), call);
    Run();
    int64_t kept = 0;
    const SparseCollective::Sum& sum = ends[2]->Of(call);
    for (const SparseEntries& part : sum.parts) {
      kept += part.size();
      EXPECT_EQ(part.values.data(), nullptr);
    }
    EXPECT_EQ(kept, GetParam() == "gather" ? 500 : 100);
    EXPECT_EQ(sum.returned.size(), GetParam() == "gather" ? 0 : 80);
    for (const auto& end : ends) end->Release(call);
  }
  const auto moved = [this](int64_t call) {
    return cost_.MovedBy({.entries = 100, .k = 100, .call = call}).bytes_sent;
  };
  EXPECT_EQ(ends[1]->traffic().bytes_sent, std::llround(moved(0) + moved(1)));
}

TEST_P(SimulatedSparse, GoOnFromTheirStateAtTheSameCost) {
  EventQueue events;
  SimSparseSums resumed(events, cost_, SimSparseSums::Kind::kNumbers, [](Rank) {});
  std::vector<std::unique_ptr<SparseCollective>> ends;
  const std::vector<Selected> mine(kRanks, {{1, 2, 7}, {3.0f, 4.0f, 5.0f}});
  for (int call = 0; call < 40; ++call) {
    for (Rank rank = 0; rank < kRanks; ++rank) ends_[rank]->Start(0, 10, 2, mine[rank].entries());
    Run();
    for (const auto& end : ends_) end->Release(call);
  }
  for (Rank rank = 0; rank < kRanks; ++rank) {
    ends.push_back(resumed.Connect(rank));
    LoadState(*ends[rank], SaveState(*ends_[rank]));
    EXPECT_EQ(SaveState(*ends[rank]), SaveState(*ends_[rank]));
  }
  const std::vector<Selected> small(kRanks, {{1, 2, 7}, {0.3f, 0.4f, 0.5f}});
  for (Rank rank = 0; rank < kRanks; ++rank) {
    ends[rank]->Start(0, 10, 2, small[rank].entries());
    ends_[rank]->Start(0, 10, 2, small[rank].entries());
  }
  Run();
  while (events.RunNext()) {
  }
  EXPECT_EQ(events.now(), cost_.Of({.entries = 3, .k = 2, .call = 40}));
  EXPECT_EQ(Summed::Of(ends[0]->Of(0)), Summed::Of(ends_[0]->Of(40)));
}

}  // namespace
}  // namespace dtrain
