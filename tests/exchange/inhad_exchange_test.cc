// Tests InHAD over the local transport with real arithmetic: lockstep equals BSP to the bit; without lockstep every
// update is a mean of gradients that are each used once and were computed at weights of one version.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "tests/exchange/loop_fixture.h"

namespace dtrain::loop {
namespace {

constexpr int kInhadSteps = 12;

// An epoch has five equal batches.  There is no clipping, which servers and workers do differently.
Scheme SchemeOf(const plain::Rule& rule) {
  Scheme scheme{rule};
  scheme.batches = {40, 8};
  scheme.last_step = kInhadSteps;
  scheme.boundary_every = kInhadSteps;
  return scheme;
}

// The plain loop, which adds the gradients of each node and then those sums.
Trace TraceByNodes(const Scheme& scheme, const std::vector<int>& node_of) {
  const int workers = static_cast<int>(node_of.size());
  plain::Model model(scheme.rule, kLayout, plain::InitialWeights(kSize));
  model.epochs = scheme.epochs;
  model.epoch_samples = scheme.batches.epoch_samples;
  model.workers = workers;
  Trace trace = {model};
  // One step more than the run needs: it may have started when the run's end was decided.
  for (int64_t step = 0; step <= scheme.last_step; ++step) {
    std::vector<std::vector<float>> sums(node_of.back() + 1, std::vector<float>(kSize));
    for (int w = 0; w < workers; ++w) {
      const std::vector<float> gradient =
          plain::GradientOf(w, step, model.weights.data(), kSize, 1, workers);
      for (size_t i = 0; i < kSize; ++i) sums[node_of[w]][i] += gradient[i];
    }
    for (size_t node = 1; node < sums.size(); ++node) {
      for (size_t i = 0; i < kSize; ++i) sums[0][i] += sums[node][i];
    }
    model.Update(sums[0], scheme.batches.batch);
    trace.push_back(model);
  }
  return trace;
}

// Returns the node of each rank.  A worker's node is given; a server with a rank of its own is on a node without
// workers.
std::vector<int> RankNodes(const Placement& placement) {
  std::vector<int> nodes = placement.node_of;
  while (static_cast<int>(nodes.size()) < placement.ranks()) {
    nodes.push_back(static_cast<int>(nodes.size() + 100));
  }
  return nodes;
}

struct Cluster {
  const char* keys;
  std::vector<int> node_of;
};
void PrintTo(const Cluster& cluster, std::ostream* out) {
  *out << cluster.keys << ", " << cluster.node_of.size() << " workers";
}

// Runs with a shared-memory window inside nodes, and with copied messages.
class LockstepTest : public ::testing::TestWithParam<std::tuple<Cluster, plain::Rule, bool>> {};

// A mean of 1, 2 or 4 gradients is their sum times a power of two, so that it is exact.
TEST_P(LockstepTest, EveryStepHasTheWeightsOfTheSynchronousLoop) {
  const auto& [cluster, rule, window] = GetParam();
  const auto strategy = MakeStrategy("inhad", std::string("lockstep: true") + cluster.keys);
  const Scheme scheme = SchemeOf(rule);
  const int workers = static_cast<int>(cluster.node_of.size());
  const Trace trace = TraceByNodes(scheme, cluster.node_of);
  Placement placement = strategy->Place(workers);
  placement.node_of = cluster.node_of;
  LocalWorld::Run(placement.ranks(), [&, window = window](Transport& transport) {
    LoopRank inputs(scheme, *strategy, placement, trace[0]);
    inputs.spec.rank_nodes = RankNodes(placement);
    inputs.spec.window = window;
    const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
    const int64_t own = scheme.batches.batch / workers;
    Turn turn = exchange->Begin(own);
    for (int64_t step = 0; !turn.boundary; ++step, turn = exchange->Begin(own)) {
      if (step == static_cast<int64_t>(trace.size())) Fail("the run does not end");
      EXPECT_EQ(Difference("weights", turn.weights.f32(), trace[step].weights), "")
          << "step " << step;
      Compute(*exchange, std::move(turn), transport.rank(), step, 1, 1);
      exchange->End({.samples = own, .loss_sum = 1});
    }
    EXPECT_GE(turn.state.samples_applied, trace[kInhadSteps].samples);
    const Collective::Traffic traffic = exchange->stats().traffic;
    EXPECT_EQ(traffic.bytes_lent, window ? traffic.bytes_inside : 0);
    if (turn.state.samples_applied == trace[kInhadSteps].samples) {
      ExpectAtBoundary(*exchange, transport.rank(), trace[kInhadSteps]);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Inhad, LockstepTest,
    ::testing::Combine(
        ::testing::Values(Cluster{"", {0}}, Cluster{", placement: colocated", {0}},
                          Cluster{"", {0, 1}}, Cluster{", servers: 3", {0, 1, 2, 3}},
                          Cluster{", pipelined: true", {0, 1, 2, 3}},
                          Cluster{", broadcast: pulled", {0, 1, 2, 3}}, Cluster{"", {0, 0, 1, 1}},
                          Cluster{", servers: 2, placement: colocated", {0, 0, 1, 1}}),
        ::testing::Values(plain::Steps(), plain::Adam()), ::testing::Bool()));

// ------------------------------------------------------------------ without lockstep

plain::Rule PlainSgd() { return {.lr = 1, .momentum = 0}; }

// Runs two nodes of two workers.  `gradient` writes worker w's gradient of step k, `look` gets the weights at the start
// of the step.  Returns the final weights.
using Write = std::function<void(int w, int64_t k, float* gradient)>;
using Look = std::function<void(int w, const float* weights)>;
std::vector<float> RunFreely(const std::string& keys, const Write& write, const Look& look,
                             std::vector<int64_t>& steps) {
  const auto strategy = MakeStrategy("inhad", keys);
  const Scheme scheme = SchemeOf(PlainSgd());
  Placement placement = strategy->Place(4);
  placement.node_of = {0, 0, 1, 1};
  const plain::Model zero(scheme.rule, kLayout, std::vector<float>(kSize));
  steps.assign(4, 0);
  std::vector<float> weights;
  LocalWorld::Run(placement.ranks(), [&](Transport& transport) {
    const int rank = transport.rank();
    LoopRank inputs(scheme, *strategy, placement, zero);
    inputs.spec.rank_nodes = RankNodes(placement);
    const std::unique_ptr<Exchange> exchange = inputs.Make(transport);
    Turn turn = exchange->Begin(2);
    for (; !turn.boundary; turn = exchange->Begin(2)) {
      look(rank, turn.weights.f32());
      turn.weights = Blob();
      std::fill_n(exchange->gradients().data, kSize, 0.0f);
      write(rank, steps[rank]++, exchange->gradients().data);
      // No worker waits for the network: steps of no length would outrun the message that ends the run.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      for (const Range& slice : kPieces.ranges) exchange->Ready(slice);
      exchange->End({.samples = 2, .loss_sum = 1});
    }
    exchange->Collect(false);
    if (rank == 0) weights.assign(exchange->weights().f32(), exchange->weights().f32() + kSize);
  });
  return weights;
}

constexpr int64_t kPlaces = kSize / 4;  // elements for the gradients of one worker

// Each gradient is 1 in an element of its own, so that the weights show by how much its update divided it: theta_v =
// theta_0 - lr * sum over updates of their means.
TEST(InhadUpdate, IsTheMeanOfItsGradientsAndEachIsInOne) {
  for (const char* keys :
       {"n: 2, modulate: off", "servers: 2, n: 4, modulate: off, pipelined: true",
        "n: 1, modulate: off, late: keep"}) {
    std::vector<int64_t> steps;
    const std::vector<float> weights = RunFreely(
        keys,
        [](int w, int64_t k, float* gradient) {
          if (k >= kPlaces) Fail("a worker takes more steps than it has places");
          gradient[w * kPlaces + k] = 1;
        },
        [](int, const float*) {}, steps);
    std::map<int64_t, int64_t> gradients_of;  // number of gradients in an update -> their total
    int64_t sum = 0;
    for (int w = 0; w < 4; ++w) {
      for (int64_t k = 0; k < kPlaces; ++k) {
        const double moved = -double{weights[w * kPlaces + k]};
        if (k >= steps[w]) {
          EXPECT_EQ(moved, 0) << keys;
          continue;
        }
        const int64_t count = std::llround(1 / moved);
        EXPECT_NEAR(moved * static_cast<double>(count), 1, 1e-6) << keys;
        ++gradients_of[count];
        ++sum;
      }
    }
    EXPECT_GE(sum, 4 * kInhadSteps) << keys;
    for (const auto& [count, gradients] : gradients_of) {
      EXPECT_EQ(gradients % count, 0) << keys << ": updates of " << count;
    }
  }
}

// Each gradient, and so each mean, is 1 everywhere: weights of version v are -v everywhere.
TEST(InhadWeights, OfAStepAreOfOneVersion) {
  int64_t versions = 0;
  for (const char* keys :
       {"servers: 2, n: 4, modulate: off", "servers: 3, n: 2, modulate: off, pipelined: true",
        "servers: 2, n: 4, modulate: off, broadcast: pulled",
        "servers: 3, n: 2, modulate: off, lockstep: true"}) {
    std::mutex mutex;
    std::vector<float> newest(4, 0);
    const Look look = [&](int w, const float* weights) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(std::all_of(weights, weights + kSize, [&](float v) { return v == weights[0]; }))
          << keys;
      EXPECT_LE(weights[0], newest[w]) << keys;
      versions += weights[0] != newest[w] ? 1 : 0;
      newest[w] = weights[0];
    };
    std::vector<int64_t> steps;
    RunFreely(
        keys, [](int, int64_t, float* gradient) { std::fill_n(gradient, kSize, 1.0f); }, look,
        steps);
  }
  EXPECT_GT(versions, 4 * kInhadSteps / 2);  // in lockstep every step has a new version
}

}  // namespace
}  // namespace dtrain::loop
