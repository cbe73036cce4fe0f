// A small run in virtual time, for tests to modify and start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/sim/simulation.h"
#include "tests/support/source_at_once.h"
#include "tests/support/strategy_text.h"

namespace dtrain {

constexpr int64_t kSize = 1000;
inline const ArenaLayout kLayout{
    {{"fc.weight", {400}, {0, 400}, true}, {"conv.weight", {600}, {400, 1000}, true}}};

struct Scenario {
  explicit Scenario(const std::string& name, int workers, const std::string& keys = "") {
    strategy = MakeStrategy(name, keys);
    ExchangeSpec& spec = setup.exchange;
    spec.solver = MakeSolver("{name: sgd, lr: 0.1, momentum: 0.9}");
    spec.layout = &kLayout;
    spec.strategy = strategy.get();
    spec.layer_gradients = {{{0, 400}, {400, 1000}}};
    spec.actors = {strategy->Place(workers), kSize, strategy->Buckets(spec.layer_gradients)};
    spec.rule = {.epoch_samples = 1 << 30, .batch = 8 * workers, .last_samples = 8 * workers * 500};
    setup.cluster.step_seconds = 0.05;
    setup.profile.batch = 8;
    setup.profile.layers = {{"conv", 600, 2400, 0, 0, 600}, {"fc", 400, 1600, 0, 0, 400}};
  }

  Scenario& FreeLink() {
    setup.cluster.network.between_nodes = {.bandwidth_gbit_s = 1e6, .latency_us = 0.001};
    setup.cluster.memory_gbyte_s = 1e6;
    return *this;
  }
  Scenario& Slowdown(std::vector<double> factors) {
    setup.cluster.slowdown = std::move(factors);
    return *this;
  }
  Scenario& Stragglers(double jitter) {
    setup.cluster.jitter = jitter;
    return *this;
  }

  SimulationResult Run() const { return Simulation(setup).Run(); }
  // Gradients per second.
  double Rate() const {
    const SimulationResult result = Run();
    int64_t steps = 0;
    for (const SimulatedWorker& worker : result.workers) steps += worker.steps;
    return static_cast<double>(steps) / ToSeconds(result.time);
  }

  std::unique_ptr<Strategy> strategy;
  SimulationSetup setup;
};

// Normal values, which depend on worker and step alone.
class NormalGradients : public SourceAtOnce {
 public:
  StepReport Compute(int worker, int64_t step, const Blob&, float* gradients) override {
    const Random random(5, Purpose::kSelfTest, static_cast<uint64_t>(worker),
                        static_cast<uint64_t>(step));
    for (int64_t i = 0; i < kSize; ++i) gradients[i] = random.Normal(static_cast<uint64_t>(i));
    return {.samples = 8, .loss_sum = 1};
  }
};

}  // namespace dtrain
