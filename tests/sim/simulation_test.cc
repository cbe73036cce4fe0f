// Tests whole runs in virtual time: the strategies' own actors over a simulated cluster.
#include "framework/sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/strategies/sync/merging.h"
#include "tests/sim/scenario.h"
#include "tests/support/source_at_once.h"

namespace dtrain {
namespace {

double MeanOf(const std::vector<int64_t>& histogram) {
  double count = 0, sum = 0;
  for (size_t s = 0; s < histogram.size(); ++s) {
    count += static_cast<double>(histogram[s]);
    sum += static_cast<double>(s) * static_cast<double>(histogram[s]);
  }
  return sum / count;
}

TEST(Simulation, ASynchronousStepTakesTheSlowestWorkersTime) {
  for (const char* name : {"allreduce", "ps_bsp"}) {
    Scenario scenario(name, 4);
    scenario.FreeLink().Slowdown({1, 1, 1, 4});
    const SimulationResult result = scenario.Run();
    EXPECT_NEAR(ToSeconds(result.time), 500 * 0.2, 0.01) << name;
    for (const SimulatedWorker& worker : result.workers) EXPECT_EQ(worker.steps, 500) << name;
    EXPECT_NEAR(ToSeconds(result.workers[0].wait), 500 * 0.15, 0.02) << name;
  }
}

TEST(Simulation, OneSlowWorkerHoldsUpBspAndSspButNotAsp) {
  const auto rate = [](const char* name, const char* keys) {
    return Scenario(name, 4, keys).FreeLink().Slowdown({1, 1, 1, 4}).Rate();
  };
  const double bsp = rate("ps_bsp", ""), ssp = rate("ps_ssp", "staleness: 3"),
               asp = rate("ps_asp", "");
  EXPECT_GE(asp, 2.5 * ssp);
  EXPECT_GE(ssp, 0.95 * bsp);
}

TEST(Simulation, TransientStragglersCostBspMoreThanSsp) {
  const auto rate = [](const char* name, const char* keys) {
    return Scenario(name, 4, keys).FreeLink().Stragglers(std::sqrt(std::exp(0.25) - 1)).Rate();
  };
  EXPECT_GE(rate("ps_ssp", "staleness: 3"), 1.1 * rate("ps_bsp", ""));
}

// While the slow worker computes one gradient, each of the others computes four: 12 in all.  Between two gradients of a
// fast worker are, of the 13 gradients in that time, (3 x 4 + 1) / 4 - 1 = 2.25.
TEST(Simulation, StalenessOfAspOnAFreeLink) {
  Scenario scenario("ps_asp", 4);
  scenario.FreeLink().Slowdown({1, 1, 1, 4}).Stragglers(0.02);
  const SimulationResult result = scenario.Run();
  const double mean = MeanOf(result.protocol.staleness);
  const double expected = (12 * 2.25 + 1 * 12) / 13.0;
  EXPECT_NEAR(mean, expected, 0.1 * expected);
}

TEST(Simulation, SspNeverLeadsByMoreThanItsBound) {
  for (const int bound : {0, 1, 3}) {
    Scenario scenario("ps_ssp", 5, "servers: 2, staleness: " + std::to_string(bound));
    scenario.Slowdown({1, 2, 1, 3, 1}).Stragglers(0.5);
    EXPECT_EQ(scenario.Run().protocol.clock_lead_max, bound);
  }
}

TEST(Simulation, OneSeedGivesOneHistory) {
  Scenario scenario("ps_asp", 4, "servers: 2");
  scenario.Stragglers(0.3);
  const SimulationResult first = scenario.Run(), second = scenario.Run();
  EXPECT_EQ(first.time, second.time);
  EXPECT_EQ(first.state_sha256, second.state_sha256);
  scenario.setup.seed = 2;
  EXPECT_NE(scenario.Run().state_sha256, first.state_sha256);
}

// f(w) = |w - target|^2 / 2, with its own small noise for every mini-batch.
class Quadratic : public SourceAtOnce {
 public:
  StepReport Compute(int worker, int64_t step, const Blob& weights, float* gradients) override {
    const Random random(3, Purpose::kSelfTest, static_cast<uint64_t>(worker),
                        static_cast<uint64_t>(step));
    double loss = 0;
    for (int64_t i = 0; i < kSize; ++i) {
      const float away = weights.f32()[i] - 1;
      loss += 0.5 * away * away;
      gradients[i] = (away + random.Uniform(static_cast<uint64_t>(i), -0.1f, 0.1f)) / divisor;
    }
    return {.samples = 8, .loss_sum = loss, .global_samples = 8 * static_cast<int64_t>(divisor)};
  }
  float divisor = 1;
};

SimulationResult RunNumeric(const std::string& name, const std::string& keys) {
  Scenario scenario(name, 4, keys);
  scenario.Stragglers(0.3);
  scenario.setup.exchange.rule.last_samples = 32 * 40;
  Quadratic source;
  source.divisor = scenario.strategy->traits().lockstep ? 4 : 1;
  const std::vector<float> weights(kSize, 0.0f);
  scenario.setup.source = &source;
  scenario.setup.exchange.start.weights = weights;
  return Simulation(scenario.setup).Run();
}

TEST(Simulation, SynchronousStrategiesGiveTheSameBits) {
  const std::vector<float> expected = RunNumeric("allreduce", "").weights;
  EXPECT_EQ(RunNumeric("allreduce", "fusion_bytes: 0").weights, expected);
  for (const char* schedule : {"naive", "wfbp", "single", "mgwfbp"}) {
    EXPECT_EQ(RunNumeric(schedule, "").weights, expected) << schedule;
  }
  EXPECT_EQ(RunNumeric("ps_bsp", "").weights, expected);
  EXPECT_EQ(RunNumeric("ps_bsp", "servers: 3").weights, expected);
  EXPECT_EQ(RunNumeric("ps_bsp", "servers: 3, placement: colocated").weights, expected);
}

// For 20 layers of 50,000 values, a step takes the time that the plan predicts from the same network.
TEST(Simulation, AStepTakesWhatItsPlanPredicts) {
  const ArenaLayout layout{{{"w", {1'000'000}, {0, 1'000'000}, true}}};
  std::map<std::string, double> seconds;
  for (const std::string name : {"naive", "wfbp", "single", "mgwfbp"}) {
    Scenario scenario(name, 8);
    ExchangeSpec& spec = scenario.setup.exchange;
    spec.layout = &layout;
    spec.layer_gradients.ranges.clear();
    scenario.setup.profile.layers.clear();
    for (int64_t i = 0; i < 20; ++i) {
      spec.layer_gradients.ranges.push_back({i * 50'000, (i + 1) * 50'000});
      scenario.setup.profile.layers.push_back({"layer", 50'000, 200'000, 0, 0, 1});
    }
    spec.collective = "ring";
    spec.rule.last_samples = 8 * 8 * 20;
    scenario.setup.cluster.network.between_nodes = {.bandwidth_gbit_s = 1, .latency_us = 200};
    scenario.setup.cluster.memory_gbyte_s = 1e6;
    const LayerGradients layer_gradients = TimedLayerGradients(scenario.setup);
    spec.actors = {scenario.strategy->Place(8), 1'000'000,
                   scenario.strategy->Buckets(layer_gradients)};
    const SimulationResult result = scenario.Run();
    seconds[name] = ToSeconds(result.time) / 20;
    const MergeStart start =
        scenario.strategy->Overlaps() ? MergeStart::kReady : MergeStart::kAfterBackward;
    EXPECT_NEAR(seconds[name], PredictStep(layer_gradients, spec.actors.buckets, start),
                0.01 * seconds[name])
        << name;
  }
  EXPECT_LT(seconds["mgwfbp"], seconds["wfbp"]);
  EXPECT_LT(seconds["mgwfbp"], seconds["single"]);
  EXPECT_LT(seconds["wfbp"], seconds["naive"]);
}

TEST(Simulation, AsynchronousStrategiesConverge) {
  for (const char* name : {"ps_asp", "ps_ssp"}) {
    const SimulationResult result = RunNumeric(name, "servers: 2");
    double away = 0;
    for (const float w : result.weights) away += (w - 1) * (w - 1);
    EXPECT_LT(std::sqrt(away / kSize), 0.2) << name;
  }
}

// --- with a compressor

TEST(CompressedSimulation, AGhostTakesTheTimeAndTheBytesOfANumericRun) {
  const std::vector<float> weights(kSize, 1.0f);
  NormalGradients source;
  SimulationResult results[2];
  for (const bool numeric : {false, true}) {
    Scenario scenario("ps_ssp", 4, "servers: 2, staleness: 2");
    scenario.setup.exchange.actors.compress = MakeCompress("{name: topk, density: 0.1}");
    scenario.setup.exchange.start.weights = weights;
    if (numeric) scenario.setup.source = &source;
    results[numeric] = scenario.Run();
  }
  // Each shard has about half of the entries, and both together have all of them.
  EXPECT_EQ(results[1].traffic.bytes_sent, results[0].traffic.bytes_sent);
  EXPECT_NEAR(ToSeconds(results[1].time), ToSeconds(results[0].time), 1e-3);  // of 25 s
  EXPECT_DOUBLE_EQ(results[1].compression.density(), 0.1);
  EXPECT_EQ(results[0].compression.entries_sent, results[1].compression.entries_sent);
  EXPECT_GT(results[0].compress_longest, 0);
  EXPECT_EQ(results[0].compress_longest, results[1].compress_longest);
}

// A push has 8 bytes for one entry in ten; the weights come back with 4 bytes each.
TEST(CompressedSimulation, ASlowLinkCarriesLess) {
  const auto seconds = [](const char* compress) {
    Scenario scenario("ps_asp", 2);
    scenario.setup.exchange.actors.compress = MakeCompress(compress);
    scenario.setup.cluster.step_seconds = 1e-6;
    scenario.setup.cluster.network.between_nodes = {.bandwidth_gbit_s = 0.001, .latency_us = 1};
    return ToSeconds(scenario.Run().time);
  };
  const double dense = seconds("none"), sparse = seconds("{name: topk, density: 0.01}");
  EXPECT_LT(sparse, 0.75 * dense);
}

}  // namespace
}  // namespace dtrain
