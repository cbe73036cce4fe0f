// NumericEngine: one net that computes the gradients of all virtual workers, on real data.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/data/batches.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"
#include "framework/nn/net.h"
#include "framework/runtime/judge/run_evaluation.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/sim/simulation.h"

namespace dtrain {

class NumericEngine : public GradientSource {
 public:
  // `graph` is for this data set (ReadModel), and outlives the engine.
  NumericEngine(const RunConfig& config, const Graph& graph, ExecutionPlan& plan,
                std::shared_ptr<const Dataset> dataset);

  StepReport Compute(int worker, int64_t step, const Blob& weights, float* gradients) override;
  void Died(int worker) override { workers_[worker].lives = false; }
  Evaluation Evaluate(Split split, const float* weights);

  const std::vector<float>& initial_weights() const { return initial_weights_; }
  std::vector<float> MeanState() const;  // of all living workers (mean_state.h)
  // A worker's batch-norm statistics.
  std::span<float> State(int worker) {
    Buffer& state = workers_[worker].state;
    return {state.f32(), state.bytes() / sizeof(float)};
  }

 private:
  struct Worker {
    BatchFiller batches;
    Buffer state;  // batch-norm statistics
    bool lives = true;
  };

  const uint64_t seed_;
  const int64_t parts_;  // of a share, as `accumulate` says
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<Batch> batch_;
  std::vector<Worker> workers_;
  std::vector<float> initial_weights_;
};

}  // namespace dtrain
