// StepRig is one worker that repeats a training step on a fixed random batch, for `dtrain time` and `dtrain bench`,
// which measure only the step, or that runs the first steps of a run on its batches, for `dtrain train --dry-run`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/execution_plan.h"
#include "framework/data/batches.h"
#include "framework/data/dataset.h"
#include "framework/exchange/exchange.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/nn/net.h"
#include "framework/setup/run_config.h"
#include "framework/train/ready_times.h"
#include "framework/train/run_inputs.h"

namespace dtrain {

class StepRig {
 public:
  // Uses the config's model, batch, solver, threads and plan; loads no data.
  explicit StepRig(const RunConfig& config);
  // Makes worker 0 of a run that is about to begin, with its share of each batch, prefetched as in the run.  It updates
  // the weights itself, whichever rank does so in the run, and is not paced.
  StepRig(const RunConfig& config, RunInputs inputs);
  ~StepRig();

  // Runs forward, backward and update, and waits until gradients are ready.  Throws DivergedError if the previous step
  // produced a NaN or infinity.
  void Step();
  // Runs several as a run does: on a device with a queue they follow one another there, and only the last is waited for.
  void Steps(int count);
  // True if the device has a queue.
  bool queued() const { return net_->device().queue != nullptr; }
  // Returns the times at which each gradient was ready in the last 1000 steps: layers with parameters, last first.
  ReadyTimes& ready() { return *ready_; }
  Net& net() { return *net_; }
  const Graph& graph() const { return *graph_; }
  const ExecutionPlan& plan() const { return plan_; }

 private:
  void MakeExchangeFor(const BoundarySchedule& rule, ExchangeSpec::Start start);
  void FillBatch(int64_t classes);
  void Step(ReadyTimes* watch, bool last);

  const RunConfig config_;  // of one worker
  const int64_t parts_;     // parts of the batch, from `accumulate`
  std::unique_ptr<Graph> graph_;
  ExecutionPlan plan_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<ReadyTimes> ready_;
  Batch batch_;  // the fixed batch, without a data set; in the device's memory
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Prefetcher> batches_;  // batches of dataset_; null: every step uses batch_
  Buffer state_;
  uint64_t step_ = 0;
};

// Holds the times of one kernel.  [0]: forward, [1]: backward.
struct KernelTimes {
  std::string name;  // the layer's, or "conv1:reorder"
  std::string implementation;
  const GraphLayer* layer = nullptr;  // null: the program inserted it
  std::vector<double> seconds[2];     // of each step
  int64_t bytes[2] = {0, 0};          // lower bound of a call's memory traffic

  double flops() const;  // per sample, both passes; 0 for an inserted kernel
};

struct StepTimes {
  std::vector<KernelTimes> kernels;  // in the order of the forward pass
  std::vector<double> steps;         // seconds, update included
};

inline constexpr int kWarmUpSteps = 3;

// Repeats the step until `enough`, after `warm_up` steps that are not timed.  Timing each kernel slows the step down, on a
// device with a queue by a wait for each.  Without that such a device's steps are timed several at a time.
StepTimes TimeSteps(StepRig& rig, bool kernels, const std::function<bool(const StepTimes&)>& enough,
                    int warm_up = kWarmUpSteps);

}  // namespace dtrain
