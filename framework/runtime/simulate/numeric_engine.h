// NumericEngine: computes the gradients of all virtual workers, on real data.
//
// Each step has as many threads as the plan says, which are as many as a worker's rank would have if
// all of them ran on this machine.  Steps of different workers are computed side by side, in lanes,
// as far as there are cores: small mini-batches do not keep a team of threads busy, and what a step
// comes to depends on no other one.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/data/batches.h"
#include "framework/data/dataset.h"
#include "framework/data/sampler.h"
#include "framework/nn/net.h"
#include "framework/runtime/judge/run_evaluation.h"
#include "framework/runtime/results/trained_epoch.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/sim/simulation.h"

namespace dtrain {

class NumericEngine : public GradientSource {
 public:
  // `graph` is for this data set (ReadModel), and outlives the engine.
  NumericEngine(const RunConfig& config, const Graph& graph, ExecutionPlan& plan,
                std::shared_ptr<const Dataset> dataset);
  ~NumericEngine() override;

  // Before anything is computed: of a run that counts its steps so (BoundarySchedule).
  void CountFrom(int64_t step_offset);

  int64_t Begin(int worker, int64_t step, const Blob& weights, float* gradients) override;
  StepReport End(int worker) override;
  void Died(int worker) override { workers_[worker].lives = false; }

  // Called with each step that ends: its worker, its number and what was found of its samples.
  using Watcher = std::function<void(int worker, int64_t step, const TrainedEpoch& found)>;
  void Watch(Watcher watcher) { watcher_ = std::move(watcher); }

  // --- while no step is computed
  Evaluation Evaluate(Split split, const float* weights);
  std::vector<float> MeanState() const;  // of all living workers (mean_state.h)
  // A worker's batch-norm statistics.
  std::span<float> State(int worker) {
    Buffer& state = workers_[worker].state;
    return {state.f32(), state.bytes() / sizeof(float)};
  }

  const std::vector<float>& initial_weights() const { return initial_weights_; }

 private:
  struct Worker {
    BatchFiller batches;
    Buffer state;  // batch-norm statistics
    bool lives = true;

    // Of the step that it has begun, until it is ended.
    int64_t step = 0;
    Blob weights;
    float* gradients = nullptr;
    bool computed = false;
    StepReport report;
    TrainedEpoch found;
    std::exception_ptr error;
  };
  // Where one step at a time is computed.
  struct Lane {
    std::unique_ptr<Net> net;
    Batch batch;
    std::thread thread;
  };

  int64_t SamplesOf(int worker, int64_t step) const;
  void RunLane(Lane& lane);
  void Compute(Worker& worker, Lane& lane) const;

  const uint64_t seed_;
  const int64_t parts_;  // of a share, as `accumulate` says
  const bool synchronous_;
  const int threads_;  // of a step
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Sampler> sampler_;
  int64_t step_offset_ = 0;
  std::vector<Worker> workers_;
  std::vector<float> initial_weights_;
  std::vector<Lane> lanes_;
  Watcher watcher_;

  std::mutex mutex_;  // guards what follows, and `computed` of the workers
  std::condition_variable begun_, computed_;
  std::deque<Worker*> waiting_;  // whose steps have been begun, and no lane is at them yet
  bool over_ = false;
};

}  // namespace dtrain
