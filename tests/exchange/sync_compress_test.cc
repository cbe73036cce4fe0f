// Tests all-reduce of a compressor's selections over the local transport: the weights are those of a plain loop with
// residuals, to the bit and on every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/inline_exchange.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/support/worlds.h"

namespace dtrain {
namespace {

struct Case {
  int ranks;
  std::string strategy, compress;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.ranks << " " << one.strategy << " " << one.compress;
}

// The residuals, by rank.
using Residuals = std::vector<std::vector<float>>;

// One step of the plain loop: adds the selections of all ranks in rank order, unit by unit.
std::vector<float> SumOfSelections(const CompressConfig& compress, const std::vector<Range>& units,
                                   int ranks, int step, Residuals& residuals) {
  std::vector<float> sum(static_cast<size_t>(kLayout.size()), 0.0F);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float>& u = residuals[rank];
    for (size_t i = 0; i < u.size(); ++i) u[i] += Gradient(rank, step, static_cast<int64_t>(i));
    for (const Range& unit : units) {
      const std::span<const float> values(u.data() + unit.begin, static_cast<size_t>(unit.size()));
      for (const int32_t place : SelectFrom(*compress.compressor, values, compress.density, {})) {
        const auto i = static_cast<size_t>(unit.begin + place);
        sum[i] += u[i];
        u[i] = 0;
      }
    }
  }
  return sum;
}

class SyncCompressTest : public ::testing::TestWithParam<Case> {};

TEST_P(SyncCompressTest, EndsWithTheWeightsOfAPlainLoop) {
  const Case c = GetParam();
  const std::unique_ptr<Strategy> strategy = MakeStrategy(c.strategy);
  const CompressConfig compress = MakeCompress(c.compress);
  const std::vector<Range> buckets = strategy->Buckets(kPieces);
  std::vector<Range> units;
  for (const Range& bucket : buckets) {
    for (const Range& unit : UnitsOf(compress.scope, bucket, kPieces.ranges, buckets)) {
      units.push_back(unit);
    }
  }
  plain::Model model(SgdRule(0), kLayout, InitialWeights());
  Residuals residuals(static_cast<size_t>(c.ranks), std::vector<float>(model.weights.size()));
  for (int step = 0; step < kSteps; ++step) {
    model.UpdateTogether({SumOfSelections(compress, units, c.ranks, step, residuals)},
                         10 * c.ranks);
  }
  LocalWorld::Run(c.ranks, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = c.ranks}, 0);
    inputs.spec.actors.compress = compress;
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int step = 0; step < kSteps; ++step) {
      const StepOutcome outcome = RunStep(exchange, transport.rank(), step);
      EXPECT_EQ(outcome.samples, 10 * c.ranks);
      EXPECT_TRUE(outcome.finite);
    }
    EXPECT_EQ(WeightsOf(exchange), model.weights);
    const ExchangeStats stats = exchange.stats();
    EXPECT_NEAR(stats.compression.density(), compress.density, 0.002);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, SyncCompressTest,
    ::testing::Values(
        Case{1, "{name: wfbp}", "{name: topk, density: 0.01}"},
        Case{2, "{name: allreduce}", "{name: topk, density: 0.01}"},
        Case{3, "{name: allreduce, fusion_bytes: 5000}", "{name: topk, density: 0.01}"},
        Case{4, "{name: naive}", "{name: topk, density: 0.01}"},
        Case{5, "{name: single}", "{name: topk, density: 0.01, scope: layer}"},
        Case{8, "{name: mgwfbp}", "{name: topk, density: 0.01}"},
        Case{4, "{name: allreduce, fusion_bytes: 5000}", "{name: topk, density: 0.3}"}));

// From a density of 1 / ranks on, gathered selections would be more bytes than the gradients.
TEST(SyncCompress, SelectionsThatPayDenseTravelAsWholeVectors) {
  constexpr int kRanks = 4;
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: allreduce, fusion_bytes: 5000}");
  const auto bytes = [&](const std::string& exchange, const std::string& compress) {
    int64_t sent = 0;
    LocalWorld::Run(kRanks, [&](Transport& transport) {
      RankInputs inputs(*strategy, {.workers = kRanks}, 0);
      if (!compress.empty()) inputs.spec.actors.compress = MakeCompress(compress);
      inputs.spec.actors.compress.exchange = exchange;
      ThreadedExchange threaded(transport, inputs.spec, 0);
      for (int step = 0; step < kSteps; ++step) RunStep(threaded, transport.rank(), step);
      if (transport.rank() == 0) sent = threaded.stats().traffic.bytes_sent;
    });
    return sent;
  };
  const int64_t dense = bytes("gather", "");
  EXPECT_EQ(bytes("gather", "{name: topk, density: 0.25}"), dense);
  EXPECT_LT(bytes("gather", "{name: topk, density: 0.24}"), dense);
  EXPECT_NE(bytes("oktopk", "{name: topk, density: 0.25}"), dense);
}

// With momentum at the workers the residual accumulates each worker's velocity, which restarts from zero at each sent
// entry.  The first step is dense.  Each worker clips the gradient before it enters the velocity.
TEST(SyncCompress, MomentumAtTheWorkersIsThatOfAPlainLoop) {
  constexpr int kRanks = 3;
  constexpr double kClip = 2;
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: allreduce, fusion_bytes: 5000}");
  CompressConfig compress = MakeCompress("{name: topk, density: 0.01, dense_steps: 1}");
  compress.momentum = 0.9;
  compress.clip_norm = kClip;
  const std::vector<Range> buckets = strategy->Buckets(kPieces);
  plain::Rule rule = SgdRule(0);
  rule.momentum = 0;
  plain::Model model(rule, kLayout, InitialWeights());
  const std::vector<float> zeros(model.weights.size());
  std::vector<std::vector<float>> velocities(kRanks, zeros), residuals(kRanks, zeros);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> sent(kRanks, zeros);
    for (int rank = 0; rank < kRanks; ++rank) {
      std::vector<float>&v = velocities[rank], &u = residuals[rank];
      std::vector<float> g(v.size());
      double squares = 0;
      for (size_t i = 0; i < g.size(); ++i) {
        g[i] = Gradient(rank, step, static_cast<int64_t>(i));
        squares += double{g[i]} * g[i];
      }
      const auto scale = static_cast<float>(kClip / std::sqrt(kRanks) / std::sqrt(squares));
      ASSERT_LT(scale, 1) << "nothing to clip";
      for (size_t i = 0; i < v.size(); ++i) {
        v[i] = 0.9F * v[i] + scale * g[i];
        if (step > 0) u[i] += v[i];
      }
      if (step == 0) sent[rank] = v;
      for (const Range& bucket : step == 0 ? std::vector<Range>{} : buckets) {
        const std::span<const float> values(u.data() + bucket.begin,
                                            static_cast<size_t>(bucket.size()));
        for (const int32_t place : SelectFrom(*compress.compressor, values, 0.01, {})) {
          const auto i = static_cast<size_t>(bucket.begin + place);
          sent[rank][i] = std::exchange(u[i], 0.0F);
          v[i] = 0;
        }
      }
    }
    model.UpdateTogether(sent, 10 * kRanks);
  }
  LocalWorld::Run(kRanks, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = kRanks}, 0);
    inputs.spec.actors.compress = compress;
    inputs.spec.solver = MakeSolver(plain::Text(rule));
    inputs.spec.rule.batch = 10 * kRanks;
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int step = 0; step < kSteps; ++step) RunStep(exchange, transport.rank(), step);
    EXPECT_EQ(WeightsOf(exchange), model.weights);
  });
}

// With plain SGD at rate 1, the decrease of the weights plus the residuals is the sum of the gradients of all steps
// and ranks.
class SumsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SumsTest, LoseNothingAndAgreeOnAllRanks) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: allreduce, fusion_bytes: 5000}");
  CompressConfig compress = MakeCompress("{name: topk, density: 0.05}");
  compress.exchange = GetParam();
  for (const int ranks : Worlds({1, 2, 3, 5, 8})) {
    std::vector<std::vector<float>> weights(ranks), kept(ranks);
    LocalWorld::Run(ranks, [&](Transport& transport) {
      RankInputs inputs(*strategy, {.workers = ranks}, 0);
      inputs.spec.actors.compress = compress;
      inputs.spec.solver = MakeSolver("{name: sgd, lr: 1, momentum: 0}");
      ThreadedExchange exchange(transport, inputs.spec, 0);
      for (int step = 0; step < kSteps; ++step) RunStep(exchange, transport.rank(), step);
      weights[transport.rank()] = WeightsOf(exchange);
      for (const StateField& field : exchange.SaveOwn().state.fields) {
        if (field.name == kResidualName) kept[transport.rank()] = field.floats;
      }
    });
    const std::vector<float> initial = InitialWeights();
    for (size_t i = 0; i < initial.size(); i += 7) {
      double expected = 0, found = double{initial[i]} - weights[0][i];
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(weights[rank][i], weights[0][i]) << ranks << " ranks, element " << i;
        found += kept[rank].at(i);
        for (int step = 0; step < kSteps; ++step) {
          expected += Gradient(rank, step, static_cast<int64_t>(i));
        }
      }
      ASSERT_NEAR(found, expected, 2e-5) << ranks << " ranks, element " << i;
    }
  }
}

// The velocity of an entry begins anew where the entry is in the sum.  What a sum hands back has not been sent: it is in
// the residual and keeps its momentum.
TEST_P(SumsTest, HandBackEntriesWithTheirMomentum) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: allreduce, fusion_bytes: 5000}");
  CompressConfig compress = MakeCompress("{name: topk, density: 0.05}");
  compress.exchange = GetParam();
  compress.momentum = 0.9;
  constexpr int kRanks = 3;
  LocalWorld::Run(kRanks, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = kRanks}, 0);
    inputs.spec.actors.compress = compress;
    inputs.spec.solver = MakeSolver("{name: sgd, lr: 1, momentum: 0}");
    ThreadedExchange exchange(transport, inputs.spec, 0);
    RunStep(exchange, transport.rank(), 0);
    WeightsOf(exchange);
    std::vector<float> residual, velocity;
    for (const StateField& field : exchange.SaveOwn().state.fields) {
      if (field.name == kResidualName) residual = field.floats;
      if (field.name == kVelocityName) velocity = field.floats;
    }
    int64_t sent = 0;
    for (size_t i = 0; i < residual.size(); ++i) {
      ASSERT_EQ(residual[i] == 0, velocity[i] == 0) << "element " << i;
      sent += velocity[i] == 0 ? 1 : 0;
    }
    EXPECT_GT(sent, 100);
  });
}

INSTANTIATE_TEST_SUITE_P(Exchanges, SumsTest, ::testing::Values("gather", "gtopk", "oktopk"));

// Returns, by rank and step, the entries that the rank sends: the positions where its residual is 0 afterwards.
std::vector<std::vector<std::vector<size_t>>> SentByRandK(const std::string& seeds, int ranks) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: allreduce, fusion_bytes: 5000}");
  std::vector<std::vector<std::vector<size_t>>> sent(static_cast<size_t>(ranks));
  LocalWorld::Run(ranks, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = ranks}, 0);
    inputs.spec.actors.compress =
        MakeCompress("{name: randk, density: 0.01, seeds: " + seeds + "}");
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int step = 0; step < kSteps; ++step) {
      RunStep(exchange, transport.rank(), step);
      std::vector<size_t>& now = sent[transport.rank()].emplace_back();
      for (const StateField& field : exchange.SaveOwn().state.fields) {
        for (size_t i = 0; field.name == kResidualName && i < field.floats.size(); ++i) {
          if (field.floats[i] == 0) now.push_back(i);
        }
      }
    }
  });
  return sent;
}

TEST(SyncCompress, WorkersOfRandKSendTheSameEntriesOnlyWithTheSameSeeds) {
  constexpr int kRanks = 3;
  const auto same = SentByRandK("same", kRanks), different = SentByRandK("different", kRanks);
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(same[0][step].size(), 0.01 * static_cast<double>(kLayout.size()), 10) << step;
    for (int rank = 1; rank < kRanks; ++rank) {
      EXPECT_EQ(same[rank][step], same[0][step]) << step;
      EXPECT_NE(different[rank][step], different[0][step]) << step;
    }
    if (step > 0) {
      EXPECT_NE(same[0][step], same[0][step - 1]);
    }
  }
}

TEST(SyncCompress, AtDensityOneItIsTheDenseRun) {
  const std::vector<float>& expected = Expected(3, 0);
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: wfbp}");
  LocalWorld::Run(3, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = 3}, 0);
    inputs.spec.actors.compress = MakeCompress("{name: topk, density: 1}");
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int step = 0; step < kSteps; ++step) RunStep(exchange, transport.rank(), step);
    EXPECT_EQ(WeightsOf(exchange), expected);
  });
}

// The residuals of an epoch at density 0.01 are sent in the first dense step.
TEST(SyncCompress, NothingStaysBehindWhenAllIsSent) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: allreduce, fusion_bytes: 5000}");
  LocalWorld::Run(2, [&](Transport& transport) {
    RankInputs inputs(*strategy, {.workers = 2}, 0);
    inputs.spec.rule.batch = 20;
    inputs.spec.rule.epoch_samples = 40;  // two steps
    inputs.spec.actors.compress = MakeCompress("{name: topk, density: 1, density_warmup: [0.01]}");
    inputs.spec.solver = MakeSolver("{name: sgd, lr: 1, momentum: 0}");
    ThreadedExchange exchange(transport, inputs.spec, 0);
    for (int step = 0; step < 3; ++step) RunStep(exchange, transport.rank(), step);
    const std::vector<float> initial = InitialWeights(), weights = WeightsOf(exchange);
    for (size_t i = 0; i < initial.size(); i += 7) {
      double sum = 0;
      for (int step = 0; step < 3; ++step) {
        for (int rank = 0; rank < 2; ++rank) sum += Gradient(rank, step, static_cast<int64_t>(i));
      }
      ASSERT_NEAR(double{initial[i]} - weights[i], sum, 1e-5) << i;
    }
  });
}

// A selector may never select a NaN, so that no rank would notice it.
TEST(SyncCompress, ANaNOfOneRankEndsTheStepOfAll) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: wfbp}");
  using Limits = std::numeric_limits<float>;
  for (const auto& [bad, density] : {std::pair(Limits::quiet_NaN(), 0.01),
                                     {Limits::infinity(), 0.01},
                                     {Limits::quiet_NaN(), 0.4}}) {
    LocalWorld::Run(3, [&, bad = bad, density = density](Transport& transport) {
      RankInputs inputs(*strategy, {.workers = 3}, 0);
      inputs.spec.actors.compress =
          MakeCompress(fmt::format("{{name: topk, density: {}}}", density));
      ThreadedExchange exchange(transport, inputs.spec, 0);
      EXPECT_TRUE(RunStep(exchange, transport.rank(), 0).finite);
      exchange.Begin(10);
      for (const Range& slice : kPieces.ranges) {
        for (int64_t i = slice.begin; i < slice.end; ++i) {
          exchange.gradients().data[i] = Gradient(transport.rank(), 1, i);
        }
        if (transport.rank() == 1 && slice.begin == 701) exchange.gradients().data[800] = bad;
        exchange.Ready(slice);
      }
      EXPECT_FALSE(exchange.End({.samples = 10, .loss_sum = 1}).finite);
    });
  }
}

}  // namespace
}  // namespace dtrain
