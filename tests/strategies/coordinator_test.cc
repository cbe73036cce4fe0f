// Tests GSSP's coordinator alone: when it makes groups, which servers it assigns, and the densities that it sends.
#include "framework/strategies/gssp/coordinator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/strategies/effect_writer.h"
#include "tests/strategies/strategies.h"

namespace dtrain::gssp {
namespace {

using Servers = std::vector<int64_t>;
using Times = std::vector<int64_t>;
using Densities = std::vector<double>;

// Reports the speeds of all workers to the coordinator, boundary by boundary.
class Boundaries {
 public:
  explicit Boundaries(const std::string& keys, int workers, const std::string& compress = "")
      : strategy_(MakeStrategy("{name: gssp, " + keys + "}")),
        setup_(SetupFor(*strategy_, workers, 10, compress)),
        coordinator_(strategy_->MakeActor(setup_.placement.CoordinatorId(), setup_)) {}

  // Returns the servers of all workers if the coordinator sent a Regroup, else none.  The group servers' probes measure
  // the transfer times `alone`, or nothing.
  Servers At(int64_t steps, int64_t epochs, const Times& compute, const Times& transfers = {},
             const Times& alone = {}) {
    Servers servers;
    densities_.clear();
    EffectWriter effects(setup_.placement, setup_.placement.CoordinatorId(), *coordinator_, text_,
                         [&](ActorId to, const Message& message) {
                           if (message.kind == Regroup::kKind)
                             servers = Unpack<Regroup>(message).server_of;
                           probes_ += message.kind == Probe::kKind ? 1 : 0;
                           if (message.kind != Density::kKind) return;
                           EXPECT_EQ(to, static_cast<ActorId>(densities_.size()));
                           densities_.push_back(Unpack<Density>(message).density);
                         });
    for (ActorId worker = 0; worker < setup_.placement.workers; ++worker) {
      const Stats stats{.compute = compute[worker],
                        .transfers = transfers.empty() ? 0 : transfers[worker],
                        .steps = steps,
                        .epochs = epochs};
      coordinator_->OnMessage(worker, Pack(stats), effects);
    }
    if (std::exchange(probes_, 0) == 0) return servers;
    const ActorId first = setup_.placement.ServerId(0);
    for (int server = 0; server < setup_.placement.servers; ++server) {
      EXPECT_EQ(servers, Servers{}) << "server " << server << " has not answered";
      Probed probed{Times(setup_.placement.workers, kUnknown)};
      for (int w = server; w < setup_.placement.workers; w += setup_.placement.servers) {
        probed.alone[w] = alone.empty() ? 0 : alone[w];
      }
      coordinator_->OnMessage(first + server, Pack(probed), effects);
    }
    return servers;
  }
  const Densities& densities() const {
    return densities_;
  }  // by worker, as reported at the last boundary
  int64_t regroups() const {
    ProtocolReport report = EmptyReport(*strategy_);
    coordinator_->Report(report);
    return report.Total("regroups");
  }
  void Reload() {
    auto fresh = strategy_->MakeActor(setup_.placement.CoordinatorId(), setup_);
    LoadState(*fresh, SaveState(*coordinator_));
    coordinator_ = std::move(fresh);
  }

 private:
  std::unique_ptr<Strategy> strategy_;
  ActorSetup setup_;
  std::unique_ptr<Actor> coordinator_;
  std::string text_;
  Densities densities_;
  int probes_ = 0;  // probes that it requested
};

// ------------------------------------------------------------------ time of the grouping

TEST(FirstGrouping, IsBehindTwentyStepsWhateverBoundariesThereWere) {
  const Times times = {100, 300, 100, 300};
  Boundaries boundaries("servers: 2", 4);
  EXPECT_EQ(boundaries.At(8, 0, times), Servers{});
  EXPECT_EQ(boundaries.At(14, 2, times), Servers{});
  EXPECT_EQ(boundaries.At(19, 2, times), Servers{});
  EXPECT_EQ(boundaries.At(20, 2, times), (Servers{0, 1, 0, 1}));
  EXPECT_EQ(boundaries.regroups(), 1);
}

TEST(FirstGrouping, WaitsUntilAllAreMeasured) {
  Boundaries boundaries("servers: 2", 4);
  EXPECT_EQ(boundaries.At(20, 1, {100, 300, 100, kUnknown}), Servers{});
  EXPECT_EQ(boundaries.At(24, 1, {100, 300, 100, 300}), (Servers{0, 1, 0, 1}));
}

TEST(FirstGrouping, ThatMovesNobodyIsNotSaidAndNotCounted) {
  Boundaries boundaries("servers: 4", 8);  // two workers a block, the slowest block first
  EXPECT_EQ(boundaries.At(20, 0, {400, 400, 300, 300, 200, 200, 100, 100}), Servers{});
  EXPECT_EQ(boundaries.regroups(), 0);
  // It still was the first grouping: from here on a worker must be misplaced for two epochs before it moves.
  const Times swapped = {400, 100, 300, 300, 200, 200, 100, 100};
  EXPECT_EQ(boundaries.At(24, 1, swapped), Servers{});
}

TEST(Drift, MovesAWorkerThatLiesElsewhereForTwoEpochs) {
  Boundaries boundaries("servers: 2", 6);
  EXPECT_EQ(boundaries.At(20, 0, {100, 100, 100, 300, 300, 300}), Servers{});
  const Times drifted = {100, 100, 300, 300, 300, 300};
  EXPECT_EQ(boundaries.At(25, 1, drifted), Servers{});
  EXPECT_EQ(boundaries.At(28, 1, drifted), Servers{});  // no new epoch yet
  boundaries.Reload();
  EXPECT_EQ(boundaries.At(30, 2, drifted), (Servers{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(boundaries.regroups(), 1);
  EXPECT_EQ(boundaries.densities(), Densities{});  // no compressor
}

TEST(Drift, IsSeenOfTheFirstWorkerAsOfAnyOther) {
  Boundaries boundaries("servers: 2", 6);
  boundaries.At(20, 0, {100, 100, 100, 300, 300, 300});
  const Times drifted = {300, 100, 100, 300, 300, 300};
  EXPECT_EQ(boundaries.At(25, 1, drifted), Servers{});
  EXPECT_EQ(boundaries.At(30, 2, drifted), (Servers{1, 0, 0, 1, 1, 1}));
}

// Times of 20 and 25 ns are one group at a spread of 25 %, 21 and 26 too, 20 and 26 are not.
TEST(FirstGrouping, IsByComputeAloneWhereNoTransferIsMeasured) {
  Boundaries two("servers: 2", 4), one("servers: 2", 4);
  EXPECT_EQ(two.At(20, 0, {20, 26, 20, 26}, Times(4, kUnknown)), (Servers{0, 1, 0, 1}));
  EXPECT_EQ(one.At(20, 0, {20, 25, 20, 25}, Times(4, kUnknown)), (Servers{0, 0, 0, 0}));
}

// Transfer times during steps show which workers share a link; probes show how long a transfer takes alone.
TEST(FirstGrouping, IsByWhatProbesFind) {
  const Times equal(4, 100), busy = {900, 900, 100, 100};
  EXPECT_EQ(Boundaries("servers: 2", 4).At(20, 0, equal, busy, {50, 200, 50, 200}),
            (Servers{0, 1, 0, 1}));
  // Where transfers take most of a step, grouping by compute alone would make two groups.
  EXPECT_EQ(Boundaries("servers: 2", 4).At(20, 0, {100, 200, 100, 200}, busy, Times(4, 5000)),
            (Servers{0, 1, 0, 1}));
}

// Probes are dense.  At density 0.35 transfers take 1.7 / 3 of their time.
TEST(FirstGrouping, CountsWhatTransfersTakeAtTheirDensity) {
  const Times compute = {100, 300, 100, 300}, alone = {300, 50, 20, 60};  // 270, 328, 111, 334
  EXPECT_EQ(Boundaries("servers: 2, groups: 2", 4, "{name: gdtopk}").At(20, 0, compute, {}, alone),
            (Servers{0, 1, 0, 1}));  // dense: 400, 350, 120, 360
}

TEST(Drift, OfOneEpochMovesNobody) {
  Boundaries boundaries("servers: 2", 6);
  const Times steady = {100, 100, 100, 300, 300, 300};
  boundaries.At(20, 0, steady);
  EXPECT_EQ(boundaries.At(25, 1, {100, 100, 300, 300, 300, 300}), Servers{});
  // The average is as before.
  EXPECT_EQ(boundaries.At(30, 2, {100, 100, 20, 300, 300, 300}), Servers{});
  EXPECT_EQ(boundaries.At(35, 3, {100, 100, 300, 300, 300, 300}), Servers{});
  EXPECT_EQ(boundaries.regroups(), 0);
}

// ------------------------------------------------------------------ choice of servers

TEST(Regrouping, OfGroupsThatChangePlacesMovesNobody) {
  Boundaries boundaries("servers: 2", 6);
  boundaries.At(20, 0, {100, 100, 100, 300, 300, 300});
  for (int64_t epoch = 1; epoch < 9; ++epoch) {
    EXPECT_EQ(boundaries.At(20 + 5 * epoch, epoch, {900, 900, 900, 300, 300, 300}), Servers{});
  }
  EXPECT_EQ(boundaries.regroups(), 0);
}

TEST(Regrouping, LeavesCompanyWhereItIsNeeded) {
  Boundaries boundaries("servers: 2, groups: 2", 4);
  boundaries.At(20, 0, {100, 100, 101, 400});
  for (int64_t epoch = 1; epoch < 20; ++epoch) {  // three workers with equal times change places
    Times times = {100, 100, 100, 400};
    times[epoch % 3] += 5;
    EXPECT_EQ(boundaries.At(20 + 5 * epoch, epoch, times), Servers{}) << epoch;
  }
  EXPECT_EQ(boundaries.regroups(), 0);
}

TEST(Regrouping, MergesGroupsIntoTheServersThatTheyHave) {
  Boundaries boundaries("servers: 4", 8);
  EXPECT_EQ(boundaries.At(20, 0, {300, 300, 100, 100, 100, 100, 300, 300}),
            (Servers{0, 0, 1, 1, 1, 1, 0, 0}));
  // There are two groups, and there will be two again.
  const Times three = {300, 300, 100, 100, 900, 900, 300, 300};
  EXPECT_EQ(boundaries.At(25, 1, three), Servers{});
  const Servers then = boundaries.At(30, 2, three);
  EXPECT_EQ(then, (Servers{0, 0, 1, 1, 0, 0, 0, 0}));
}

// ------------------------------------------------------------------ densities

TEST(Densities, GoWithTheWorkersWhenGroupsChange) {
  // Compute times are equal, transfer times are not: with speed_gap a worker with longer transfers sends less.
  Boundaries boundaries("servers: 2, groups: 2", 6, "{name: gdtopk, policy: speed_gap}");
  Times compute(6, 1000);
  const Times slow_links = {100, 100, 100, 3000, 3000, 3000};
  boundaries.At(20, 0, compute, slow_links, slow_links);
  boundaries.At(25, 1, compute, {100, 100, 100, 3000, 3000, 3000});
  EXPECT_EQ(boundaries.densities()[2], 0.35);
  EXPECT_NEAR(boundaries.densities()[3], 0.177, 1e-9);
  // Worker 2 becomes one of the slow workers; its density was 0.35 until now.
  compute[2] = 4000;
  boundaries.At(30, 2, compute, {100, 100, 100, 2400, 2400, 2400});
  const double slow = boundaries.densities()[3];
  EXPECT_EQ(boundaries.densities()[2], 0.35);
  EXPECT_LT(slow, 0.177);
  EXPECT_EQ(boundaries.At(35, 3, compute, {100, 100, 100, 2100, 2100, 2100}),
            (Servers{0, 0, 1, 1, 1, 1}));
  // Half-way from the mean density of the four workers to the least density.
  const double mean = (0.35 + 3 * slow) / 4;
  EXPECT_EQ(boundaries.densities()[2], boundaries.densities()[3]);
  EXPECT_NEAR(boundaries.densities()[3], 0.5 * mean + 0.5 * 0.004, 1e-9);
  EXPECT_EQ(boundaries.densities()[0], 0.35);
}

// Worker 3, whose link is slower, computes faster from the first epoch on and moves to group 0.  The workers measured
// times at their own densities; the group's time is that at their mean density.
TEST(Densities, OfAGroupAreSolvedFromWhatItsWorkersWouldTakeAtOneOfThem) {
  Boundaries boundaries("servers: 2, groups: 2", 6, "{name: gdtopk, policy: speed_gap}");
  // Transfer times without the gradient's upload.
  const Densities whole = {500, 500, 500, 800, 500, 500};
  Densities density(6, 0.35);
  const auto boundary = [&](int64_t epochs, int64_t compute) {
    Times transfers;
    for (int w = 0; w < 6; ++w) transfers.push_back(std::llround(whole[w] * (1 + 2 * density[w])));
    return boundaries.At(20 + 5 * epochs, epochs, {700, 700, 700, compute, 1000, 1000}, transfers);
  };
  boundary(0, 1000);
  double average = 1000;  // of worker 3's compute time
  for (int64_t epoch = 1; epoch < 20; ++epoch, density = boundaries.densities()) {
    average = 0.3 * average + 0.7 * 300;
    if (boundary(epoch, 300).empty()) continue;
    const double mean = (3 * density[0] + density[3]) / 4;
    const std::vector<GroupSpeed> groups = {{4, (2100 + average) / 4, 575 * (1 + 2 * mean), mean},
                                            {2, 1000, 500 * (1 + 2 * density[4]), density[4]}};
    const double expected = DensitiesOf(DensityPolicy::kSpeedGap, groups, epoch + 1)[0];
    EXPECT_NEAR(boundaries.densities()[0], expected, 2e-3);
    EXPECT_EQ(boundaries.densities()[3], boundaries.densities()[0]);
    EXPECT_GT(density[0] - density[3], 0.1);
    return;
  }
  FAIL() << "worker 3 stays where it is";
}

TEST(Densities, TransfersThatAreNotMeasuredYetAreThoseThatTheDensityLetsExpect) {
  Boundaries boundaries("servers: 2, grouping: static", 4, "{name: gdtopk, policy: speed_gap}");
  const Times compute = {100, 100, 400, 400};
  boundaries.At(25, 1, compute, {340, 340, 340, 340});
  const Densities first = boundaries.densities();
  boundaries.At(50, 2, compute, Times(4, kUnknown));
  const Densities expected =
      DensitiesOf(DensityPolicy::kSpeedGap,
                  {{2, 100, std::round(TransfersAt(340, 0.35, first[0])), first[0]},
                   {2, 400, std::round(TransfersAt(340, 0.35, first[2])), first[2]}},
                  3);
  EXPECT_EQ(boundaries.densities(),
            (Densities{expected[0], expected[0], expected[1], expected[1]}));
}

// Times are averaged over epochs: 0.3 of the old average, 0.7 of the new epoch.
TEST(Densities, FollowTheMixedTimes) {
  Boundaries boundaries("servers: 2, grouping: static", 3, "{name: gdtopk, policy: speed_gap}");
  boundaries.At(20, 0, {1000, 1000, 1500}, {400, 400, 1000});
  EXPECT_EQ(boundaries.densities(), Densities{});  // the first epoch is not over
  boundaries.At(25, 1, {2000, 2000, 1500}, {600, 600, 1000});
  const double compute = 0.3 * 1000 + 0.7 * 2000, transfers = 0.3 * 400 + 0.7 * 600;
  const std::vector<GroupSpeed> groups = {{2, compute, transfers, 0.35}, {1, 1500, 1000, 0.35}};
  const Densities expected = DensitiesOf(DensityPolicy::kSpeedGap, groups, 2);
  EXPECT_EQ(boundaries.densities(), (Densities{expected[0], expected[0], expected[1]}));
  // The densities are between the bounds, so that another mean would show.
  EXPECT_GT(expected[0], 0.18);
  EXPECT_LT(expected[1], 0.34);
  boundaries.At(28, 1, {9000, 9000, 1500}, {600, 600, 1000});
  EXPECT_EQ(boundaries.densities(), Densities{});  // no new epoch yet
}

TEST(Densities, StayWhereNoTransferIsMeasured) {
  Boundaries boundaries("servers: 2, grouping: static", 2, "{name: gdtopk, policy: speed_gap}");
  boundaries.At(25, 1, {1000, 2000}, Times(2, kUnknown));
  EXPECT_EQ(boundaries.densities(), (Densities{0.35, 0.35}));
}

// ------------------------------------------------------------------ boundaries

TEST(Boundaries, AreAskedForWhereSomethingIsDone) {
  const auto boundaries = [](const std::string& keys, const std::string& compress) {
    const Strategy::Boundaries asked =
        MakeStrategy("{name: gssp, " + keys + "}")->boundaries(MakeCompress(compress));
    return std::pair(asked.every_epochs, asked.after_steps);
  };
  using Asked = std::pair<int64_t, int64_t>;
  EXPECT_EQ(boundaries("servers: 4", ""), Asked(1, 20));
  EXPECT_EQ(boundaries("servers: 4, grouping: static", ""), Asked(0, 0));
  EXPECT_EQ(boundaries("servers: 4, groups: 1", ""), Asked(0, 0));
  EXPECT_EQ(boundaries("servers: 1", ""), Asked(0, 0));
  EXPECT_EQ(boundaries("servers: 4, grouping: static", "{name: gdtopk}"), Asked(1, 0));
  EXPECT_EQ(boundaries("servers: 4, grouping: static", "{name: gdtopk, flush: none}"), Asked(1, 0));
}

}  // namespace
}  // namespace dtrain::gssp
