// Tests all-reduce by coders over the local transport: the weights are those of a plain loop over all workers, with the
// same bits on every rank, and a run that is saved goes on as if it had not stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "framework/comm/local/local_world.h"
#include "framework/exchange/inline_exchange.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/support/coded_workers.h"

namespace dtrain {
namespace {

const ArenaLayout kCoded{{{"fc.weight", {20, 30}, {0, 600}, true},
                          {"fc.bias", {20}, {600, 620}, false},
                          {"conv.weight", {8, 3, 5, 5}, {620, 1220}, true},
                          {"conv.bias", {8}, {1220, 1228}, false}}};
const LayerGradients kCodedLayers{{{0, 620}, {620, 1228}}};

struct CoderCase {
  int ranks;
  std::string strategy, compress;
};

void PrintTo(const CoderCase& one, std::ostream* out) {
  *out << one.ranks << " " << one.strategy << " " << one.compress;
}

std::vector<float> CodedWeights() {
  std::vector<float> weights(static_cast<size_t>(kCoded.size()));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = Gradient(99, 0, static_cast<int64_t>(i));
  return weights;
}

ExchangeSpec CodedSpec(const Strategy& strategy, int ranks, const std::string& compress,
                       std::span<const float> weights) {
  ExchangeSpec spec;
  spec.layout = &kCoded;
  spec.strategy = &strategy;
  spec.layer_gradients = kCodedLayers;
  spec.actors = {{.workers = ranks}, kCoded.size(), strategy.Buckets(kCodedLayers)};
  spec.actors.compress = MakeCompress(compress);
  spec.solver = MakeSolver(plain::Text(SgdRule(0)));
  spec.rule = {.epoch_samples = kEpoch, .batch = 10, .last_samples = kEpoch};
  spec.seed = 3;
  spec.start.weights = weights;
  return spec;
}

StepOutcome CodedStep(Exchange& exchange, int rank, int step, float first = 0) {
  Turn turn = exchange.Begin(10);
  EXPECT_FALSE(turn.boundary);
  turn.weights = Blob();
  float* const gradients = exchange.gradients().data;
  for (const Range& layer : kCodedLayers.ranges) {
    for (int64_t i = layer.begin; i < layer.end; ++i) gradients[i] = Gradient(rank, step, i);
    if (layer.begin == 0 && first != 0) gradients[0] = first;
    exchange.Ready(layer);
  }
  return exchange.End({.samples = 10, .loss_sum = 2.5 * (rank + 1)});
}

// The plain loop: all workers' codings in one place, one bucket after the other.
std::vector<float> CodedPlainly(const CoderCase& c, int steps) {
  const std::vector<Range> buckets = MakeStrategy(c.strategy)->Buckets(kCodedLayers);
  std::deque<CodedWorkers> workers;  // by bucket
  for (const Range& bucket : buckets) {
    std::vector<ArenaEntry> parameters;
    for (const ArenaEntry& entry : kCoded.entries) {
      if (bucket.Contains(entry.range)) parameters.push_back(entry);
    }
    workers.emplace_back(c.compress, parameters, c.ranks, 3);
  }
  plain::Model model(SgdRule(0), kCoded, CodedWeights());
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<float>> gradients(c.ranks);
    for (int rank = 0; rank < c.ranks; ++rank) {
      for (int64_t i = 0; i < kCoded.size(); ++i) {
        gradients[rank].push_back(Gradient(rank, step, i));
      }
    }
    std::vector<float> sum(static_cast<size_t>(kCoded.size()));
    for (size_t b = 0; b < buckets.size(); ++b) {
      const std::vector<float> of_bucket = workers[b].Step(gradients);
      std::copy_n(of_bucket.begin() + buckets[b].begin, buckets[b].size(),
                  sum.begin() + buckets[b].begin);
    }
    model.UpdateTogether({sum}, 10 * c.ranks);
  }
  return model.weights;
}

class CoderExchangeTest : public ::testing::TestWithParam<CoderCase> {};

TEST_P(CoderExchangeTest, EndsWithTheWeightsOfThePlainLoop) {
  const CoderCase c = GetParam();
  const std::unique_ptr<Strategy> strategy = MakeStrategy(c.strategy);
  const std::vector<float> initial = CodedWeights(), expected = CodedPlainly(c, kSteps);
  LocalWorld::Run(c.ranks, [&](Transport& transport) {
    const ExchangeSpec spec = CodedSpec(*strategy, c.ranks, c.compress, initial);
    ThreadedExchange exchange(transport, spec, 0);
    for (int step = 0; step < kSteps; ++step) {
      const StepOutcome outcome = CodedStep(exchange, transport.rank(), step);
      EXPECT_EQ(outcome.samples, 10 * c.ranks);
      EXPECT_EQ(outcome.loss_sum, 2.5 * c.ranks * (c.ranks + 1) / 2);
      EXPECT_TRUE(outcome.finite);
    }
    EXPECT_EQ(WeightsOf(exchange), expected);
    const ExchangeStats stats = exchange.stats();
    EXPECT_EQ(stats.compression.entries, kSteps * kCoded.size());
    EXPECT_LT(stats.compression.density(), 0.5);
    EXPECT_GT(stats.compression.density(), 0.02);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, CoderExchangeTest,
    ::testing::Values(CoderCase{1, "{name: wfbp}", "ef_signsgd"},
                      CoderCase{2, "{name: allreduce}", "ef_signsgd"},
                      CoderCase{5, "{name: wfbp}", "ef_signsgd"},
                      CoderCase{1, "{name: single}", "{name: powersgd, rank: 2}"},
                      CoderCase{3, "{name: allreduce}", "{name: powersgd, rank: 2}"},
                      CoderCase{4, "{name: naive}", "{name: powersgd, rank: 4}"},
                      CoderCase{2, "{name: wfbp}", "powersgd"}));

// A NaN on one rank is known on all at the end of the step, though signs have none.
TEST(CoderExchange, ANanEndsTheRunOnAllRanks) {
  const std::unique_ptr<Strategy> strategy = MakeStrategy("{name: wfbp}");
  const std::vector<float> initial = CodedWeights();
  for (const char* compress : {"ef_signsgd", "powersgd"}) {
    LocalWorld::Run(3, [&](Transport& transport) {
      const ExchangeSpec spec = CodedSpec(*strategy, 3, compress, initial);
      ThreadedExchange exchange(transport, spec, 0);
      EXPECT_TRUE(CodedStep(exchange, transport.rank(), 0).finite);
      const float first = transport.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
      EXPECT_FALSE(CodedStep(exchange, transport.rank(), 1, first).finite) << compress;
      EXPECT_TRUE(exchange.Begin(10).boundary);
    });
  }
}

}  // namespace
}  // namespace dtrain
