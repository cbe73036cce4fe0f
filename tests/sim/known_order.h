// A run in virtual time whose events have an order that a plain loop can repeat: three workers of known speeds, on a link
// that takes no time.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/sim/scenario.h"
#include "tests/support/plain_inputs.h"
#include "tests/support/plain_loop.h"
#include "tests/support/source_at_once.h"

namespace dtrain {

// No two workers end a step at the same time within a run.
inline const std::vector<double> kSlowdown = {1, 1.37, 2.11};
constexpr int64_t kEpochSamples = 100, kLastSamples = 290;

inline int64_t SamplesOf(int worker) { return 7 + worker; }

class KnownSource : public SourceAtOnce {
 public:
  StepReport Compute(int worker, int64_t step, const Blob& weights, float* gradients) override {
    const std::vector<float> gradient = plain::GradientOf(worker, step, weights.f32(), kSize);
    std::copy(gradient.begin(), gradient.end(), gradients);
    return {.samples = SamplesOf(worker), .global_samples = SamplesOf(worker)};
  }
};

inline SimulationResult RunInKnownOrder(Scenario& scenario, const plain::Rule& rule) {
  scenario.FreeLink().Slowdown(kSlowdown);
  SimulationSetup& setup = scenario.setup;
  setup.cluster.step_seconds = 1;
  setup.exchange.solver = MakeSolver(plain::Text(rule));
  setup.exchange.epochs = 3;
  setup.exchange.rule = {.epoch_samples = kEpochSamples, .batch = 24, .last_samples = kLastSamples};
  KnownSource source;
  const std::vector<float> initial = plain::InitialWeights(kSize);
  setup.source = &source;
  setup.exchange.start.weights = initial;
  return scenario.Run();
}

// Returns the model with which the plain loop of such a run starts.
inline plain::Model StartOfKnownOrder(const plain::Rule& rule) {
  plain::Model start(rule, kLayout, plain::InitialWeights(kSize));
  start.epochs = 3;
  start.epoch_samples = kEpochSamples;
  start.workers = static_cast<int>(kSlowdown.size());
  return start;
}

}  // namespace dtrain
