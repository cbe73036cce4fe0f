// NumericEngine: computes the gradients of all virtual workers of a simulation on real data.
//
// Each step uses as many threads as the plan gives a rank, which is a worker's part of this machine if all workers ran
// on it.  Steps of different workers are computed at the same time, in lanes, as far as there are cores: a small
// mini-batch does not keep many threads busy.  The result of a step does not depend on any other step.
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
#include "framework/evaluate/run_evaluation.h"
#include "framework/nn/net.h"
#include "framework/results/trained_epoch.h"
#include "framework/setup/run_config.h"
#include "framework/sim/simulation.h"

namespace dtrain {

class NumericEngine : public GradientSource {
 public:
  // `graph` must be made for this data set (ReadModel) and outlive the engine.
  NumericEngine(const RunConfig& config, const Graph& graph, ExecutionPlan& plan,
                std::shared_ptr<const Dataset> dataset);
  ~NumericEngine() override;

  // Sets the first step number of a resumed run (BoundarySchedule).  Call it before any step.
  void CountFrom(int64_t step_offset);

  int64_t Begin(int worker, int64_t step, const Blob& weights, float* gradients) override;
  StepReport End(int worker) override;
  void Died(int worker) override { workers_[worker].lives = false; }
  BlobMemory Memory() const override {
    BlobMemory memory;
    memory.pinned_for = lanes_[0].net->device().queue;
    return memory;
  }

  // It is called for each step that ends, with its worker, its number and the training results of its samples.
  using Watcher = std::function<void(int worker, int64_t step, const TrainedEpoch& found)>;
  void Watch(Watcher watcher) { watcher_ = std::move(watcher); }

  // --- Call the following only while no step is computed.
  Evaluation Evaluate(Split split, ConstArena weights, ConstArena state);
  // Returns the batch-norm statistics of a model: the mean over the workers that are alive (mean_state.h), or estimated
  // for these weights (estimated_state.h), as the config says.
  std::vector<float> StateOf(ConstArena weights);
  // Returns a worker's batch-norm statistics.
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

    // This is the step that the worker has begun and not ended.
    int64_t step = 0;
    Blob weights;
    float* gradients = nullptr;
    bool computed = false;
    StepReport report;
    TrainedEpoch found;
    std::exception_ptr error;
  };
  // Lane is a net with a thread, which computes one step at a time.
  struct Lane {
    std::unique_ptr<Net> net;
    Batch batch;
    std::thread thread;
  };

  std::vector<float> MeanState() const;
  int64_t SamplesOf(int worker, int64_t step) const;
  void RunLane(Lane& lane);
  void Compute(Worker& worker, Lane& lane) const;

  const uint64_t seed_;
  const int64_t parts_;  // micro-batches of a share (`accumulate`)
  const bool lockstep_;
  const int threads_;               // threads of a step
  const int64_t estimate_samples_;  // of SamplesOfEstimate
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Sampler> sampler_;
  int64_t step_offset_ = 0;
  std::vector<Worker> workers_;
  std::vector<float> initial_weights_;
  std::vector<Lane> lanes_;
  Watcher watcher_;

  std::mutex mutex_;  // guards the following members, and `computed` of the workers
  std::condition_variable begun_, computed_;
  std::deque<Worker*> waiting_;  // workers whose steps have begun, and that no lane computes yet
  bool over_ = false;
};

}  // namespace dtrain
