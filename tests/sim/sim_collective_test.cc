#include "framework/sim/sim_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/scenario.h"
#include "tests/sim/schedule_player.h"
#include "tests/sim/sim_network.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kFloats = 16 * 4 * 1000;

CollectiveCost Cost() { return {"ordered", 4, RoundNumbers(), 0.25}; }

// All-reduces of four ranks over ghost vectors, with the time at which each is done.
class Sums {
 public:
  explicit Sums(bool overlap)
      : reductions_(events_, Cost(), 4, overlap, [this](Rank rank) { Note(rank); }) {
    for (Rank rank = 0; rank < 4; ++rank) ends_.push_back(reductions_.Connect(rank));
  }

  // All ranks start a sum at `time`; rank 3 starts `late` after that.
  void StartAt(Nanos time, Nanos late = 0, int64_t n = kFloats) {
    for (Rank rank = 0; rank < 4; ++rank) {
      events_.At(time + (rank == 3 ? late : 0), [this, rank, n] {
        ends_[rank]->Start({static_cast<float*>(nullptr), static_cast<size_t>(n)});
      });
    }
  }

  std::vector<Nanos> Done() {
    while (events_.RunNext()) {
    }
    return done_;
  }

 private:
  void Note(Rank rank) {
    if (rank == 0) done_.push_back(events_.now());
  }

  EventQueue events_;
  SimReductions reductions_;
  std::vector<std::unique_ptr<Collective>> ends_;
  std::vector<Nanos> done_;
};

TEST(SimReductions, OneAtATimeUnlessTheyOverlap) {
  const Nanos alone = Cost().Of(kFloats);
  const Nanos busy = Cost().Interval(kFloats);
  EXPECT_EQ(alone - busy, 200) << "two latencies";
  for (const bool overlap : {false, true}) {
    Sums sums(overlap);
    for (int i = 0; i < 3; ++i) sums.StartAt(0);
    const Nanos next = overlap ? busy : alone;
    EXPECT_THAT(sums.Done(), ElementsAre(alone, alone + next, alone + 2 * next)) << overlap;
  }
}

TEST(SimReductions, OneThatBeginsOnAFreeChannelTakesItsTime) {
  const Nanos alone = Cost().Of(kFloats);
  for (const bool overlap : {false, true}) {
    Sums sums(overlap);
    sums.StartAt(0);
    sums.StartAt(10 * alone);
    EXPECT_THAT(sums.Done(), ElementsAre(alone, 11 * alone)) << overlap;
  }
}

TEST(SimReductions, OneThatBeginsLateIsHiddenOnlyInPart) {
  const Nanos alone = Cost().Of(kFloats);
  Sums sums(true);
  sums.StartAt(0);
  sums.StartAt(alone - 50);
  EXPECT_THAT(sums.Done(), ElementsAre(alone, alone - 50 + alone));
}

TEST(SimReductions, WaitForTheLastRankInTheOrderOfStart) {
  const Nanos alone = Cost().Of(kFloats);
  const Nanos short_one = Cost().Interval(16);
  for (const bool overlap : {false, true}) {
    Sums sums(overlap);
    sums.StartAt(0, /*late=*/1000);
    sums.StartAt(1, 1000, 16);
    const Nanos first = 1000 + alone;
    const Nanos second = overlap ? first + short_one : first + Cost().Of(16);
    EXPECT_THAT(sums.Done(), ElementsAre(first, second)) << overlap;
  }
}

// Four lanes, message by message.
TEST(SimReductions, OverlapIsNearWhatSendingMessageByMessageGives) {
  NetworkModel network = RoundNumbers();
  for (const double latency_us : {0.1, 5.0, 40.0, 400.0}) {
    network.between_nodes.latency_us = latency_us;
    for (const char* name : {"ring", "halving_doubling"}) {
      const CollectiveCost cost(name, 8, network, 0);
      const CollectiveScheduler scheduler =
          CollectiveRegistry::Get("collective", name).rules(8).scheduler;
      constexpr int64_t kVector = 16 * 8 * 100;
      constexpr int kVectors = 12;
      const auto played = [&](int lanes) {
        const std::vector<int64_t> vectors(kVectors, kVector);
        return static_cast<double>(
            SchedulePlayer(scheduler, 8, network, 0, vectors, lanes).Finish());
      };
      const auto serial = static_cast<double>(kVectors * cost.Of(kVector));
      EXPECT_NEAR(serial, played(1), 0.02 * serial) << name << ", " << latency_us << " us";
      const auto overlapped =
          static_cast<double>(cost.Of(kVector) + (kVectors - 1) * cost.Interval(kVector));
      EXPECT_NEAR(overlapped, played(4), 0.2 * overlapped) << name << ", " << latency_us << " us";
    }
  }
}

TEST(OverlapBuckets, MakesASimulatedStepShorterWhereLatencyCounts) {
  const auto seconds = [](bool overlap) {
    Scenario scenario("allreduce", 8, "fusion_bytes: 1000");
    scenario.setup.cluster.step_seconds = 0.0001;
    scenario.setup.cluster.network.between_nodes = {.bandwidth_gbit_s = 1, .latency_us = 500};
    scenario.setup.exchange.overlap_buckets = overlap;
    return ToSeconds(scenario.Run().time);
  };
  EXPECT_LT(seconds(true), 0.8 * seconds(false));
}

}  // namespace
}  // namespace dtrain
