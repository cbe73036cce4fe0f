// Tests the exchange with its driver over the local transport: for every world size, bucket size and thread
// interleaving the final weights are those of a plain sequential loop, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <mutex>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/exchange/inline_exchange.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/support/strategy_text.h"
#include "tests/support/worlds.h"

namespace dtrain {
namespace {

// Returns a strategy that all ranks share; it outlives their exchanges.
const Strategy& AllReduce(int64_t fusion_bytes) {
  static std::mutex mutex;
  static std::map<int64_t, std::unique_ptr<Strategy>> strategies;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Strategy>& strategy = strategies[fusion_bytes];
  if (strategy == nullptr) {
    strategy = MakeStrategy("allreduce", "fusion_bytes: " + std::to_string(fusion_bytes));
  }
  return *strategy;
}

std::unique_ptr<Exchange> MakeThreaded(Transport& transport, int ranks, int64_t fusion_bytes,
                                       double clip_norm, double stall_seconds = 0,
                                       int64_t boundary_after = kEpoch) {
  const RankInputs inputs(AllReduce(fusion_bytes), {.workers = ranks}, clip_norm, boundary_after);
  return std::make_unique<ThreadedExchange>(transport, inputs.spec, stall_seconds);
}

struct ExchangeCase {
  int ranks;
  int64_t fusion_bytes;
  double clip_norm;
};

class ExchangeTest : public ::testing::TestWithParam<ExchangeCase> {};

TEST_P(ExchangeTest, EndsWithTheSequentialWeightsOnEveryRank) {
  const ExchangeCase c = GetParam();
  const std::vector<float>& expected = Expected(c.ranks, c.clip_norm);
  LocalWorld::Run(c.ranks, [&](Transport& transport) {
    const auto exchange = MakeThreaded(transport, c.ranks, c.fusion_bytes, c.clip_norm);
    for (int step = 0; step < kSteps; ++step) {
      const StepOutcome outcome = RunStep(*exchange, transport.rank(), step);
      EXPECT_EQ(outcome.samples, 10 * c.ranks);
      EXPECT_FLOAT_EQ(outcome.loss_sum, 2.5 * c.ranks * (c.ranks + 1) / 2);
      EXPECT_TRUE(outcome.finite);
      EXPECT_FALSE(outcome.stop);
    }
    EXPECT_EQ(WeightsOf(*exchange), expected);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, ExchangeTest,
                         ::testing::Values(ExchangeCase{1, 64 << 20, 0},
                                           ExchangeCase{2, 64 << 20, 0}, ExchangeCase{2, 0, 0},
                                           ExchangeCase{3, 4096, 0}, ExchangeCase{3, 4096, 0.5},
                                           ExchangeCase{4, 0, 0.5}));

// A schedule decides when a bucket is sent and changes no bit: buckets planned from times, and no overlap.
class ScheduleTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScheduleTest, EndsWithTheSequentialWeightsInAnyWorld) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy(GetParam());
  LayerGradients timed = kPieces;
  timed.ready = {0.001, 0.002, 0.004, 0.01};
  timed.reduce_seconds = [](int64_t bytes) { return 0.003 + 1e-8 * static_cast<double>(bytes); };
  for (const int ranks : Worlds({2, 3, 4, 5, 8})) {
    const std::vector<float>& expected = Expected(ranks, 0);
    LocalWorld::Run(ranks, [&](Transport& transport) {
      RankInputs inputs(*strategy, {.workers = ranks}, 0);
      inputs.spec.actors.buckets = strategy->Buckets(timed);
      ThreadedExchange exchange(transport, inputs.spec, 0);
      for (int step = 0; step < kSteps; ++step) RunStep(exchange, transport.rank(), step);
      EXPECT_EQ(WeightsOf(exchange), expected);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScheduleTest,
                         ::testing::Values("{name: naive}", "{name: wfbp}", "{name: single}",
                                           "{name: allreduce, fusion_bytes: 5000}",
                                           "{name: mgwfbp}", "{name: mgwfbp, rule: published}"));

// Sums in double are added in rank order, several of them a step and at the same time as gradients.
TEST(ThreadedExchange, SumsOverWorkersAreThoseInRankOrder) {
  const auto value = [](int rank, int step, size_t i) {
    return 1e8 * Gradient(rank, step, static_cast<int64_t>(i)) + 0.1 * rank;
  };
  LocalWorld::Run(4, [&](Transport& transport) {
    const int mine = transport.rank();
    const auto exchange = MakeThreaded(transport, 4, 0, 0);
    for (int step = 0; step < 5; ++step) {
      exchange->Begin(10);
      for (const Range& slice : kPieces.ranges) {
        const size_t count = 3 + static_cast<size_t>(slice.begin % 5);
        std::vector<double> sum(count);
        for (size_t i = 0; i < count; ++i) sum[i] = value(mine, step, i);
        exchange->SumOverWorkers(sum);
        for (size_t i = 0; i < count; ++i) {
          EXPECT_EQ(sum[i], ((value(0, step, i) + value(1, step, i)) + value(2, step, i)) +
                                value(3, step, i));
        }
        std::fill(exchange->gradients().data + slice.begin, exchange->gradients().data + slice.end,
                  0.0f);
        exchange->Ready(slice);
      }
      EXPECT_EQ(exchange->End({.samples = 10}).samples, 40);
    }
  });
}

TEST(ThreadedExchange, ASumThatOneRankNeverJoinsIsAStall) {
  std::promise<void> noticed;
  LocalWorld::Run(2, [&](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0, 0.1);
    exchange->Begin(10);
    if (transport.rank() == 1) return noticed.get_future().wait();
    std::vector<double> sum(3);
    EXPECT_THROW(exchange->SumOverWorkers(sum), StalledError);
    noticed.set_value();
  });
}

TEST(InlineExchange, EndsWithTheSequentialWeights) {
  const auto transport = LocalWorld(1).Connect(0);
  const RankInputs inputs(AllReduce(4096), {.workers = 1}, 0);
  InlineExchange exchange(inputs.spec, *transport);
  for (int step = 0; step < kSteps; ++step) RunStep(exchange, 0, step);
  EXPECT_EQ(WeightsOf(exchange), Expected(1, 0));
}

TEST(ThreadedExchange, AStopWishOfOneRankReachesAllInTheSameStep) {
  LocalWorld::Run(3, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 3, 4096, 0);
    EXPECT_FALSE(RunStep(*exchange, transport.rank(), 0).stop);
    EXPECT_TRUE(RunStep(*exchange, transport.rank(), 1, transport.rank() == 2).stop);
  });
}

TEST(ThreadedExchange, ANaNGradientOfOneRankIsSeenByAll) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0);
    Turn turn = exchange->Begin(1);
    for (const Range& slice : kPieces.ranges) {
      std::fill(exchange->gradients().data + slice.begin, exchange->gradients().data + slice.end,
                transport.rank() == 1 && slice.begin == 701 ? NAN : 0.0f);
      exchange->Ready(slice);
    }
    EXPECT_FALSE(exchange->End({.samples = 1}).finite);
  });
}

TEST(ThreadedExchange, ANaNLossIsSeenByAll) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0);
    Turn turn = exchange->Begin(1);
    std::fill_n(exchange->gradients().data, kLayout.size(), 0.0f);
    for (const Range& slice : kPieces.ranges) exchange->Ready(slice);
    EXPECT_FALSE(
        exchange->End({.samples = 1, .loss_sum = transport.rank() == 0 ? NAN : 1.0}).finite);
  });
}

TEST(ThreadedExchange, AVersionThatIsHeldIsNotOverwritten) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0);
    exchange->Collect(false);
    const Blob before = exchange->weights();
    RunStep(*exchange, transport.rank(), 0);
    EXPECT_EQ(std::vector<float>(before.f32(), before.f32() + before.size()), InitialWeights());
  });
}

TEST(ThreadedExchange, ARankThatNeverComesEndsInAStallReport) {
  std::string message;
  EXPECT_THROW(LocalWorld::Run(2,
                               [&](Transport& transport) {
                                 const auto exchange = MakeThreaded(transport, 2, 0, 0, 1);
                                 if (transport.rank() == 1) {
                                   // This rank is alive but never reduces: it waits until rank 0 is gone.
                                   exchange->AtBoundary([](Transport& t) {
                                     std::byte never[1];
                                     Request r = t.Receive(0, Tag::kBulk, never);
                                     while (!t.Test(r)) std::this_thread::yield();
                                   });
                                 }
                                 try {
                                   RunStep(*exchange, transport.rank(), 0);
                                 } catch (const StalledError& error) {
                                   message = error.what();
                                   throw;
                                 }
                               }),
               StalledError);
  EXPECT_THAT(message, testing::HasSubstr("rank 0 of 2: nothing has moved for 1 s\n"
                                          "  rank 0: allreduce worker: step 1, 4 of 4 buckets "
                                          "sent, 0 % of the gradient reduced"));
  EXPECT_THAT(message, testing::HasSubstr("\n  rank 1: worker 1, no answer"));
}

TEST(ThreadedExchange, BoundaryWorkRunsInTheSameOrderOnAllRanks) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0);
    RunStep(*exchange, transport.rank(), 0);
    int received = 0;
    exchange->AtBoundary([&](Transport& t) {
      const int mine = 10 + t.rank();
      Request out = t.Send(1 - t.rank(), Tag::kBulk, std::as_bytes(std::span(&mine, 1)));
      Request in =
          t.Receive(1 - t.rank(), Tag::kBulk, std::as_writable_bytes(std::span(&received, 1)));
      while (out.active()) t.Test(out);
      while (in.active()) t.Test(in);
    });
    EXPECT_EQ(received, 11 - transport.rank());
    RunStep(*exchange, transport.rank(), 1);
  });
}

}  // namespace
}  // namespace dtrain
