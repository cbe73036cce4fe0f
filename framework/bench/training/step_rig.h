// StepRig: one worker that repeats a training step on a fixed random batch - for `dtrain time` and
// `dtrain bench`, which measure the step and nothing around it.
#pragma once

#include <memory>

#include "framework/core/execution_plan.h"
#include "framework/data/dataset.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/net.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

class StepRig {
 public:
  // Uses the config's model, batch, solver, threads and plan; loads no data.
  explicit StepRig(const RunConfig& config);
  ~StepRig();

  void Step();  // forward, backward and update
  Net& net() { return *net_; }
  const Graph& graph() const { return *graph_; }
  const ExecutionPlan& plan() const { return plan_; }

 private:
  void FillBatch(int64_t classes);

  const RunConfig config_;  // of one worker
  const int64_t parts_;     // of the batch, as `accumulate` says
  std::unique_ptr<Graph> graph_;
  ExecutionPlan plan_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Exchange> exchange_;
  Batch batch_;
  Buffer state_;
  uint64_t step_ = 0;
};

}  // namespace dtrain
