// Tests the parameter server over the local transport, with real threads, messages and boundaries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/exchange/inline_exchange.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "framework/strategies/strategy.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/support/strategy_text.h"

namespace dtrain {
namespace {

using Body = std::function<void(Exchange& exchange, Rank rank, bool worker)>;

// Runs `body` on every rank of `workers` workers and their servers.
void RunRanks(const Strategy& strategy, int workers, int64_t boundary_after, const Body& body,
              double stall_seconds = 0, double clip_norm = 0) {
  const Placement placement = strategy.Place(workers);
  LocalWorld::Run(placement.ranks(), [&](Transport& transport) {
    const RankInputs inputs(strategy, placement, clip_norm, boundary_after);
    ThreadedExchange exchange(transport, inputs.spec, stall_seconds);
    body(exchange, transport.rank(), placement.IsWorker(transport.rank()));
  });
}

// Steps until a boundary.  Returns the number of steps.
int StepToBoundary(Exchange& exchange, Rank rank, BoundaryState& boundary) {
  for (int step = 0;; ++step) {
    Turn turn = exchange.Begin(10);
    if (turn.boundary) {
      boundary = turn.state;
      return step;
    }
    turn.weights = Blob();
    float* gradients = exchange.gradients().data;
    for (const Range& slice : kPieces.ranges) {
      for (int64_t i = slice.begin; i < slice.end; ++i) gradients[i] = Gradient(rank, step, i);
      exchange.Ready(slice);
    }
    exchange.End({.samples = 10, .loss_sum = 1});
  }
}

class PsBspTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PsBspTest, EndsWithTheSequentialWeightsOnEveryRank) {
  const auto strategy = MakeStrategy("ps_bsp", GetParam());
  const std::vector<float>& expected = Expected(3, 0);
  RunRanks(*strategy, 3, kSteps * 3 * 10, [&](Exchange& exchange, Rank rank, bool worker) {
    BoundaryState boundary;
    EXPECT_EQ(StepToBoundary(exchange, rank, boundary), worker ? kSteps : 0);
    EXPECT_EQ(boundary.samples_applied, kSteps * 3 * 10);
    EXPECT_EQ(WeightsOf(exchange), expected);
  });
}

// The norm of each worker's gradient is about 316.
TEST_P(PsBspTest, EveryWorkerShortensItsGradientBeforeItIsSent) {
  const auto strategy = MakeStrategy("ps_bsp", GetParam());
  const std::vector<float>& expected = Expected(3, 200, true);
  const Body body = [&](Exchange& exchange, Rank rank, bool) {
    BoundaryState boundary;
    StepToBoundary(exchange, rank, boundary);
    EXPECT_TRUE(WeightsOf(exchange) == expected);
  };
  RunRanks(*strategy, 3, kSteps * 3 * 10, body, 0, 200);
  EXPECT_TRUE(expected != Expected(3, 0));
}

INSTANTIATE_TEST_SUITE_P(Servers, PsBspTest,
                         ::testing::Values("servers: 1", "servers: 3",
                                           "servers: 1, placement: colocated",
                                           "servers: 2, placement: colocated",
                                           "servers: 3, placement: colocated"));

// The bias correction of Adam counts solver steps on the rank that makes them.
TEST(PsExchange, UpdatesAreCountedWhereTheyAreMade) {
  for (const auto& [name, updates_a_step] : {std::pair{"ps_bsp", 1}, std::pair{"ps_asp", 3}}) {
    const auto strategy = MakeStrategy(name, "servers: 2");
    const auto count = [name = name, each = updates_a_step](Exchange& exchange, Rank rank, bool) {
      BoundaryState boundary;
      StepToBoundary(exchange, rank, boundary);
      exchange.Collect(true);
      if (rank != 0) return;
      EXPECT_EQ(exchange.updates(), boundary.samples_applied / 30.0 * each) << name;
    };
    RunRanks(*strategy, 3, kSteps * 3 * 10, count);
  }
}

TEST(PsExchange, OneWorkerBesideItsServerNeedsNoThread) {
  const auto strategy = MakeStrategy("ps_bsp", "placement: colocated");
  const auto transport = LocalWorld(1).Connect(0);
  const RankInputs inputs(*strategy, strategy->Place(1), 0, kSteps * 10);
  InlineExchange exchange(inputs.spec, *transport);
  BoundaryState boundary;
  EXPECT_EQ(StepToBoundary(exchange, 0, boundary), kSteps);
  EXPECT_EQ(WeightsOf(exchange), Expected(1, 0));
}

TEST(PsExchange, AnAsynchronousRunPausesWhenEverySampleStartedIsApplied) {
  for (const char* name : {"ps_asp", "ps_ssp"}) {
    const auto strategy = MakeStrategy(name, "servers: 2");
    std::mutex mutex;
    int64_t steps = 0, applied = 0, counted = 0;
    RunRanks(*strategy, 3, 500, [&](Exchange& exchange, Rank rank, bool worker) {
      BoundaryState boundary;
      const int mine = StepToBoundary(exchange, rank, boundary);
      const ProtocolReport report = exchange.stats().protocol;
      const std::lock_guard lock(mutex);
      steps += mine;
      applied = boundary.samples_applied;
      for (const int64_t count : report.staleness) counted += count;
    });
    EXPECT_EQ(applied, 10 * steps) << name;
    EXPECT_GE(applied, 500) << name;
    EXPECT_LE(applied, 500 + 2 * 10)
        << name;  // includes the steps that started while the boundary message was on its way
    EXPECT_EQ(counted, steps) << name;  // the staleness of every gradient is counted once
  }
}

TEST(PsExchange, ARunGoesOnAfterABoundary) {
  const auto strategy = MakeStrategy("ps_ssp", "staleness: 1");
  const Placement placement = strategy->Place(2);
  LocalWorld::Run(3, [&](Transport& transport) {
    RankInputs inputs(*strategy, placement, 0, 400);
    inputs.spec.rule.checkpoint_every_steps = 10;  // boundaries at about 100, 200 and 300 samples
    ThreadedExchange exchange(transport, inputs.spec, 0);
    BoundaryState boundary;
    int boundaries = 0;
    while (boundary.samples_applied < 400) {
      StepToBoundary(exchange, transport.rank(), boundary);
      ++boundaries;
      WeightsOf(exchange);
      if (boundary.samples_applied < 400) exchange.Leave();
    }
    // A step that starts while a boundary message is on its way may reach the next boundary.
    EXPECT_GE(boundaries, 2);
    EXPECT_LE(boundaries, 4);
  });
}

TEST(PsExchange, AStopWishOfOneWorkerPausesAll) {
  for (const char* name : {"ps_bsp", "ps_asp"}) {
    const auto strategy = MakeStrategy(name, "");
    RunRanks(*strategy, 2, kEpoch, [](Exchange& exchange, Rank rank, bool worker) {
      for (int step = 0;; ++step) {
        const Turn turn = exchange.Begin(10);
        if (turn.boundary) {
          EXPECT_TRUE(turn.state.stop);
          EXPECT_TRUE(turn.state.finite);
          return;
        }
        std::fill_n(exchange.gradients().data, kLayout.size(), 0.0f);
        exchange.Ready({0, kLayout.size()});
        exchange.End({.samples = 10, .stop = rank == 1 && step == 2});
      }
    });
  }
}

TEST(PsExchange, ANaNInAServersUpdatePausesAll) {
  for (const char* name : {"ps_bsp", "ps_ssp"}) {
    const auto strategy = MakeStrategy(name, "servers: 2");
    RunRanks(*strategy, 2, kEpoch, [](Exchange& exchange, Rank rank, bool worker) {
      for (int step = 0;; ++step) {
        const Turn turn = exchange.Begin(10);
        if (turn.boundary) {
          EXPECT_FALSE(turn.state.finite);
          return;
        }
        ASSERT_LT(step, 50);
        std::fill_n(exchange.gradients().data, kLayout.size(), 0.0f);
        if (rank == 1 && step == 1) exchange.gradients().data[299'999] = NAN;
        exchange.Ready({0, kLayout.size()});
        exchange.End({.samples = 10});
      }
    });
  }
}

// The servers apply the last pushes after the workers have reported their end.
TEST(PsExchange, ANaNInTheLastPushIsNoGoodEnd) {
  const auto strategy = MakeStrategy("ps_asp", "");
  RunRanks(*strategy, 2, 20, [](Exchange& exchange, Rank, bool) {
    for (;;) {
      const Turn turn = exchange.Begin(10);
      if (turn.boundary) {
        EXPECT_FALSE(turn.state.finite);
        return;
      }
      std::fill_n(exchange.gradients().data, kLayout.size(), NAN);
      exchange.Ready({0, kLayout.size()});
      exchange.End({.samples = 10});
    }
  });
}

// --- with a compressor

// The steps of one worker arrive in order, so that the weights are those of a plain loop.
TEST(CompressedPs, AtDensityOneHasTheBitsOfTheDenseRun) {
  const std::vector<float>& expected = Expected(1, 0);
  for (const char* name : {"ps_asp", "ps_ssp"}) {
    const auto strategy = MakeStrategy(name, "servers: 2");
    const Placement placement = strategy->Place(1);
    LocalWorld::Run(3, [&](Transport& transport) {
      RankInputs inputs(*strategy, placement, 0, kSteps * 10);
      inputs.spec.actors.compress = MakeCompress("{name: topk, density: 1}");
      ThreadedExchange exchange(transport, inputs.spec, 0);
      BoundaryState boundary;
      StepToBoundary(exchange, transport.rank(), boundary);
      EXPECT_EQ(WeightsOf(exchange), expected) << name;
    });
  }
}

// The plain loop with residuals.
std::vector<float> ExpectedOfTopK(size_t k) {
  plain::Model model(SgdRule(0), kLayout, InitialWeights());
  std::vector<float> residual(model.weights.size());
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::pair<float, size_t>> by_size;
    for (size_t i = 0; i < residual.size(); ++i) {
      residual[i] += Gradient(0, step, static_cast<int64_t>(i));
      by_size.push_back({-std::abs(residual[i]), i});
    }
    std::sort(by_size.begin(), by_size.end());
    std::vector<std::vector<float>> sent(1, std::vector<float>(residual.size()));
    for (size_t j = 0; j < k; ++j) {
      const size_t i = by_size[j].second;
      sent[0][i] = std::exchange(residual[i], 0.0f);
    }
    model.UpdateTogether(sent, 10);
  }
  return model.weights;
}

TEST(CompressedPs, SendsTheLargestAndKeepsTheRestForLater) {
  const std::vector<float> expected = ExpectedOfTopK(3000);
  for (const char* keys : {"servers: 1", "servers: 3", "placement: colocated"}) {
    const auto strategy = MakeStrategy("ps_ssp", keys);
    const Placement placement = strategy->Place(1);
    LocalWorld::Run(placement.ranks(), [&](Transport& transport) {
      RankInputs inputs(*strategy, placement, 0, kSteps * 10);
      inputs.spec.actors.compress = MakeCompress("{name: topk, density: 0.01}");
      ThreadedExchange exchange(transport, inputs.spec, 0);
      BoundaryState boundary;
      StepToBoundary(exchange, transport.rank(), boundary);
      EXPECT_TRUE(WeightsOf(exchange) == expected) << keys;
      const ExchangeStats stats = exchange.stats();
      if (transport.rank() != 0) return;
      EXPECT_DOUBLE_EQ(stats.compression.density(), 0.01);
      EXPECT_GT(stats.compression.time, 0);
      if (placement.colocated) return;
      const int64_t gradients = kSteps * 3000 * 8, headers = kSteps * 3 * 200 + 10'000;
      EXPECT_LT(stats.traffic.bytes_sent, gradients + headers);
    });
  }
}

// Runs one step of a worker and the server on the same rank.
void StepBySelf(Driver& driver, int step) {
  driver.Begin();
  while (driver.Progress()) {
  }
  EXPECT_TRUE(driver.TakeStarted());
  for (int64_t i = 0; i < kLayout.size(); ++i) driver.gradients()[i] = Gradient(0, step, i);
  driver.ReadyLast(kPieces.ranges.back(), {.samples = 10});
  while (driver.Progress()) {
  }
  EXPECT_TRUE(driver.TakeEnded());
}

// The state has the residuals and the number of the next selection, from which gdtopk draws its sample.
TEST(CompressedPs, ADriverGoesOnFromSavedState) {
  const auto strategy = MakeStrategy("ps_asp", "placement: colocated");
  RankInputs inputs(*strategy, strategy->Place(1), 0);
  inputs.spec.actors.compress = MakeCompress("gdtopk");
  inputs.spec.actors.compress.density = 0.02;
  const auto transport = LocalWorld(1).Connect(0);
  const WallClock clock;
  BlobPools pools;
  RankParts one(inputs.spec, 0, DependenciesOver(*transport, inputs.spec, clock, pools));
  RankParts two(inputs.spec, 0, DependenciesOver(*transport, inputs.spec, clock, pools));
  for (int step = 0; step < 2; ++step) StepBySelf(one.driver, step);
  LoadState(two.driver, SaveState(one.driver));
  StepBySelf(one.driver, 2);
  StepBySelf(two.driver, 2);
  EXPECT_EQ(HashState(two.driver), HashState(one.driver));
}

TEST(PsExchange, ASlowStepIsNoStall) {
  const auto strategy = MakeStrategy("ps_ssp", "staleness: 0");
  const auto body = [](Exchange& exchange, Rank rank, bool worker) {
    for (;;) {
      const Turn turn = exchange.Begin(10);
      if (turn.boundary) return;
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(700));
      exchange.Ready({0, kLayout.size()});
      exchange.End({.samples = 10});
    }
  };
  RunRanks(*strategy, 2, 40, body,
           0.2);  // throws if a rank that should be a worker is taken for a server
}

TEST(PsExchange, AServerThatNeverAnswersIsNamed) {
  const auto strategy = MakeStrategy("ps_asp", "");
  std::string message;
  const auto run = [&] {
    LocalWorld::Run(2, [&](Transport& transport) {
      if (transport.rank() ==
          1) {  // this rank is alive but not a server: it waits until rank 0 is gone
        std::byte never[1];
        Request request = transport.Receive(0, Tag::kCollective, never);
        while (!transport.Test(request)) std::this_thread::yield();
      }
      const RankInputs inputs(*strategy, strategy->Place(1), 0);
      ThreadedExchange exchange(transport, inputs.spec, 0.2);
      BoundaryState boundary;
      try {
        StepToBoundary(exchange, 0, boundary);
      } catch (const StalledError& error) {
        message = error.what();
        throw;
      }
    });
  };
  EXPECT_THROW(run(), StalledError);
  EXPECT_THAT(message, testing::HasSubstr("rank 0: ps_asp worker 0"));
  EXPECT_THAT(message, testing::HasSubstr("rank 1: server 0, no answer"));
}

}  // namespace
}  // namespace dtrain
