// The exchange with its driver, over the local transport: every world size, bucket size and thread
// interleaving ends with the weights of a plain sequential loop, to the bit.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>

#include "framework/comm/local/local_world.h"
#include "framework/config/reader.h"
#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/strategies/inline_exchange.h"
#include "framework/strategies/sync/buckets.h"
#include "framework/strategies/sync/sync_worker.h"
#include "framework/strategies/threaded_exchange.h"

namespace dtrain {
namespace {

constexpr int kSteps = 4;
const GradientPieces kPieces{{{0, 700}, {700, 701}, {701, 3000}, {3000, 300'000}}};
const ArenaLayout kLayout{{{"fc.weight", {700}, {0, 700}, true},
                           {"fc.bias", {1}, {700, 701}, false},
                           {"conv.weight", {2299}, {701, 3000}, true},
                           {"embedding.weight", {297'000}, {3000, 300'000}, true}}};

SolverConfig Sgd(double clip_norm = 0) {
  config::Document document = config::Document::FromText(
      "solver: {name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.001, clip_norm: " +
          std::to_string(clip_norm) + "}",
      "test");
  SolverConfig solver = ReadSolverConfig(document.root().Section("solver"));
  document.Finish();
  return solver;
}

float Gradient(int rank, int step, int64_t i) {
  return Random(7, Purpose::kSelfTest, static_cast<uint64_t>(rank), static_cast<uint64_t>(step))
      .Uniform(static_cast<uint64_t>(i), -1, 1);
}

std::vector<float> InitialWeights() {
  std::vector<float> weights(static_cast<size_t>(kLayout.size()));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = Gradient(99, 0, static_cast<int64_t>(i));
  return weights;
}

// The canonical sum and one whole update a step.
std::vector<float> Expected(int ranks, double clip_norm) {
  const SolverConfig solver = Sgd(clip_norm);
  std::vector<float> weights = InitialWeights();
  std::vector<float> momentum(weights.size());
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> sum(weights.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] = Gradient(0, step, static_cast<int64_t>(i));
      for (int r = 1; r < ranks; ++r) sum[i] += Gradient(r, step, static_cast<int64_t>(i));
    }
    double squares = 0;
    for (const float g : sum) squares += double{g} * g;
    float* state[] = {momentum.data()};
    UpdateArgs args;
    args.lr = LearningRate(solver, 1, ranks).At(step * 10.0 * ranks / 1e9);
    args.gradient_scale =
        clip_norm > 0 ? static_cast<float>(std::min(1.0, clip_norm / std::sqrt(squares))) : 1.0f;
    args.gradient = sum.data();
    args.weights_in = args.weights_out = weights.data();
    args.state = state;
    EXPECT_TRUE(solver.solver->Apply(kLayout, {0, kLayout.size()}, args));
  }
  return weights;
}

std::unique_ptr<Driver> MakeDriver(int ranks, int64_t fusion_bytes, double clip_norm,
                                   Collective* collective) {
  DriverOptions options;
  options.solver = Sgd(clip_norm);
  options.epoch_samples = 1'000'000'000;
  options.workers = ranks;
  auto actor = std::make_unique<SyncWorker>("allreduce", FusionBuckets(kPieces, fusion_bytes),
                                            clip_norm > 0);
  auto driver = std::make_unique<Driver>(std::move(actor), kLayout, std::move(options), collective);
  driver->Restore(InitialWeights(), {});
  return driver;
}

StepOutcome RunStep(Exchange& exchange, int rank, int step, bool stop = false) {
  const Blob weights = exchange.Begin();
  EXPECT_EQ(weights.size(), kLayout.size());
  for (const Range& piece : kPieces.ranges) {
    for (int64_t i = piece.begin; i < piece.end; ++i) {
      exchange.gradients()[i] = Gradient(rank, step, i);
    }
    exchange.Ready(piece);
  }
  return exchange.End({10, 2.5 * (rank + 1), stop});
}

std::unique_ptr<Exchange> MakeThreaded(Transport& transport, int ranks, int64_t fusion_bytes,
                                       double clip_norm, double stall_seconds = 0) {
  return std::make_unique<ThreadedExchange>(
      transport,
      [=](Transport& t) {
        ThreadedExchange::Parts parts;
        parts.collective = MakeCollective("ordered", t);
        parts.driver = MakeDriver(ranks, fusion_bytes, clip_norm, parts.collective.get());
        return parts;
      },
      stall_seconds);
}

struct Case {
  int ranks;
  int64_t fusion_bytes;
  double clip_norm;
};

class ExchangeTest : public ::testing::TestWithParam<Case> {};

TEST_P(ExchangeTest, EndsWithTheSequentialWeightsOnEveryRank) {
  const Case c = GetParam();
  const std::vector<float> expected = Expected(c.ranks, c.clip_norm);
  LocalWorld::Run(c.ranks, [&](Transport& transport) {
    const auto exchange = MakeThreaded(transport, c.ranks, c.fusion_bytes, c.clip_norm);
    for (int step = 0; step < kSteps; ++step) {
      const StepOutcome outcome = RunStep(*exchange, transport.rank(), step);
      EXPECT_EQ(outcome.samples, 10 * c.ranks);
      EXPECT_FLOAT_EQ(outcome.loss_sum, 2.5 * c.ranks * (c.ranks + 1) / 2);
      EXPECT_TRUE(outcome.finite);
      EXPECT_FALSE(outcome.stop);
    }
    const Blob weights = exchange->weights();
    EXPECT_EQ(std::vector<float>(weights.f32(), weights.f32() + weights.size()), expected);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, ExchangeTest,
                         ::testing::Values(Case{1, 64 << 20, 0}, Case{2, 64 << 20, 0}, Case{2, 0, 0},
                                           Case{3, 4096, 0}, Case{3, 4096, 0.5}, Case{4, 0, 0.5}));

TEST(InlineExchange, EndsWithTheSequentialWeights) {
  const auto transport = LocalWorld(1).Connect(0);
  InlineExchange exchange(MakeDriver(1, 4096, 0, nullptr), *transport);
  for (int step = 0; step < kSteps; ++step) RunStep(exchange, 0, step);
  const Blob weights = exchange.weights();
  EXPECT_EQ(std::vector<float>(weights.f32(), weights.f32() + weights.size()), Expected(1, 0));
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
    Blob weights = exchange->Begin();
    for (const Range& piece : kPieces.ranges) {
      std::fill(exchange->gradients() + piece.begin, exchange->gradients() + piece.end,
                transport.rank() == 1 && piece.begin == 701 ? NAN : 0.0f);
      exchange->Ready(piece);
    }
    EXPECT_FALSE(exchange->End({1, 0, false}).finite);
  });
}

TEST(ThreadedExchange, ANaNLossIsSeenByAll) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0);
    Blob weights = exchange->Begin();
    std::fill_n(exchange->gradients(), kLayout.size(), 0.0f);
    for (const Range& piece : kPieces.ranges) exchange->Ready(piece);
    EXPECT_FALSE(exchange->End({1, transport.rank() == 0 ? NAN : 1.0, false}).finite);
  });
}

TEST(ThreadedExchange, AVersionThatIsHeldIsNotOverwritten) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0);
    const Blob before = exchange->weights();
    RunStep(*exchange, transport.rank(), 0);
    EXPECT_EQ(std::vector<float>(before.f32(), before.f32() + before.size()), InitialWeights());
  });
}

TEST(ThreadedExchange, ARankThatNeverComesEndsInAStallReport) {
  std::string message;
  EXPECT_THROW(LocalWorld::Run(2,
                               [&](Transport& transport) {
                                 if (transport.rank() == 1) {
                                   // Alive, but never reduces: waits until rank 0 is gone.
                                   std::byte never[1];
                                   Request r = transport.Receive(0, Tag::kBulk, never);
                                   while (!transport.Test(r)) std::this_thread::yield();
                                 }
                                 const auto exchange = MakeThreaded(transport, 2, 0, 0, 0.2);
                                 try {
                                   RunStep(*exchange, transport.rank(), 0);
                                 } catch (const StalledError& error) {
                                   message = error.what();
                                   throw;
                                 }
                               }),
               StalledError);
  EXPECT_NE(message.find("rank 0 of 2: nothing has moved for 0 s | allreduce: step 1, 4 of 4 buckets"),
            std::string::npos)
      << message;
}

TEST(ThreadedExchange, RestWorkRunsInTheSameOrderOnAllRanks) {
  LocalWorld::Run(2, [](Transport& transport) {
    const auto exchange = MakeThreaded(transport, 2, 0, 0);
    RunStep(*exchange, transport.rank(), 0);
    int received = 0;
    exchange->AtRest([&](Transport& t) {
      const int mine = 10 + t.rank();
      Request out = t.Send(1 - t.rank(), Tag::kBulk, std::as_bytes(std::span(&mine, 1)));
      Request in = t.Receive(1 - t.rank(), Tag::kBulk, std::as_writable_bytes(std::span(&received, 1)));
      while (out.active()) t.Test(out);
      while (in.active()) t.Test(in);
    });
    EXPECT_EQ(received, 11 - transport.rank());
    RunStep(*exchange, transport.rank(), 1);
  });
}

}  // namespace
}  // namespace dtrain
