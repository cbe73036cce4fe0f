// Tests GSSP over the local transport with real arithmetic: which servers apply each gradient, and what the model is
// when the replicas differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "tests/exchange/loop_fixture.h"

namespace dtrain::loop {
namespace {

constexpr int kWorkers = 3;
constexpr double kLr = 0.05;

float GradientAt(int worker, int64_t step, size_t i) {
  return golden::Unit(1000 * static_cast<uint64_t>(worker + 1) + static_cast<uint64_t>(step), i);
}

// The state of a run at one of its boundaries.
struct AtBoundary {
  std::vector<int64_t> steps = std::vector<int64_t>(kWorkers);
  std::vector<float> weights;
  double spread = 0;
  ProtocolReport protocol;  // of all actors
};

// Runs to the end, or to the first boundary after `steps` steps of all workers together.
AtBoundary RunTo(const std::string& keys, int64_t steps, bool last,
                 const std::string& compress = "") {
  const auto strategy = MakeStrategy("gssp", keys);
  Scheme scheme{{.lr = kLr, .momentum = 0}};
  scheme.batches = {1000, 2 * kWorkers};
  scheme.last_step = last ? steps / kWorkers : 10 * steps;
  scheme.boundary_every = steps / kWorkers;
  const Placement placement = strategy->Place(kWorkers);
  const plain::Model start(scheme.rule, kLayout, plain::InitialWeights(kSize));
  AtBoundary found;
  std::mutex mutex;
  LocalWorld::Run(placement.ranks(), [&](Transport& transport) {
    const int rank = transport.rank();
    LoopRank inputs(scheme, *strategy, placement, start);
    inputs.spec.actors.compress = MakeCompress(compress);
    const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
    Turn turn = exchange->Begin(2);
    for (int64_t step = 0; !turn.boundary; ++step, turn = exchange->Begin(2)) {
      turn.weights = Blob();
      for (size_t i = 0; i < kSize; ++i) exchange->gradients().data[i] = GradientAt(rank, step, i);
      for (const Range& slice : kPieces.ranges) exchange->Ready(slice);
      exchange->End({.samples = 2, .loss_sum = 1});
      found.steps[rank] = step + 1;
    }
    exchange->Collect(true);
    const std::lock_guard lock(mutex);
    found.protocol.Add(exchange->stats().protocol);
    if (rank != 0) return;
    found.weights.assign(exchange->weights().f32(), exchange->weights().f32() + kSize);
    found.spread = exchange->spread().value_or(0);
  });
  return found;
}

// Returns theta_0 - lr / W * the sum of all gradients, where those of worker w are multiplied by share[w].
std::vector<double> Expected(const AtBoundary& run, const std::vector<double>& share) {
  std::vector<double> expected;
  for (const float value : plain::InitialWeights(kSize)) expected.push_back(value);
  for (int w = 0; w < kWorkers; ++w) {
    for (int64_t step = 0; step < run.steps[w]; ++step) {
      for (size_t i = 0; i < kSize; ++i) {
        expected[i] -= kLr / kWorkers * share[w] * double{GradientAt(w, step, i)};
      }
    }
  }
  return expected;
}

double LargestDifference(const std::vector<float>& weights, const std::vector<double>& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{weights[i]} - expected[i]));
  }
  return largest;
}

class GsspSumTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

// When all messages are delivered and the last sums flushed, every server has applied every gradient once, times 1/W.
TEST_P(GsspSumTest, AtTheEndAllServersHaveAllGradients) {
  const AtBoundary run = RunTo(GetParam().first, 90, true, GetParam().second);
  EXPECT_LT(LargestDifference(run.weights, Expected(run, {1, 1, 1})), 1e-5);
  EXPECT_LT(run.spread, 1e-6);
  EXPECT_EQ(run.protocol.gradients(), run.steps[0] + run.steps[1] + run.steps[2]);
}

INSTANTIATE_TEST_SUITE_P(
    Gssp, GsspSumTest,
    ::testing::Values(std::pair{"servers: 1", ""}, std::pair{"servers: 3", ""},
                      std::pair{"servers: 2, scale: gradient, exchange_every: 5", ""},
                      std::pair{"servers: 3, placement: colocated, groups: 2", ""},
                      std::pair{"servers: 2, inside: bsp", ""},
                      std::pair{"servers: 2, staleness: 0", "{name: gdtopk}"},
                      std::pair{"servers: 3", "{name: gdtopk, flush: none}"}));

class ReplicaTest : public ::testing::TestWithParam<const char*> {};

// Group 0 has two workers, group 1 has one, and server 2 is idle.  Before the first group synchronisation each server
// has only its own group's gradients.
TEST_P(ReplicaTest, TheModelAtABoundaryIsTheirMeanBySizeOfGroup) {
  const AtBoundary run = RunTo(std::string("servers: 3, group_of: [0, 0, 1], grouping: static, "
                                           "exchange_every: 1000") +
                                   GetParam(),
                               30, false);
  const std::vector<double> mean = Expected(run, {2.0 / 3, 2.0 / 3, 1.0 / 3});
  EXPECT_LT(LargestDifference(run.weights, mean), 1e-5);
  const std::vector<double> first = Expected(run, {1, 1, 0}), second = Expected(run, {0, 0, 1});
  double distance = 0, length = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    distance +=
        2.0 / 3 * std::pow(first[i] - mean[i], 2) + 1.0 / 3 * std::pow(second[i] - mean[i], 2);
    length += mean[i] * mean[i];
  }
  EXPECT_GT(run.spread, 0.001);
  EXPECT_NEAR(run.spread, std::sqrt(distance / length), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Gssp, ReplicaTest, ::testing::Values("", ", placement: colocated"));

}  // namespace
}  // namespace dtrain::loop
