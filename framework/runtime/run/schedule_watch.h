// ScheduleWatch: whether a schedule that goes by time still goes by the right ones, and a new plan where
// it does not.
//
// The exchange and the trainer note when gradients are there and how long sums take, in the last 32
// steps; at a boundary all ranks put that together.  Sums in a run may take longer than those that were
// measured before it, for they share the machine with computing: such a plan was made from other
// times than those that count, which is worth knowing, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/comm/reduce_time.h"
#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/exchange/all_reduce_times.h"
#include "framework/exchange/exchange.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/run/ready_times.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// What steps took, all ranks together.
struct SeenTimes {
  std::vector<double> ready;  // by layer's gradient, at the slowest worker
  std::vector<double> sums;   // by bucket

  double compute_seconds() const { return ready.back(); }
  double sum_seconds() const;
};

// Whether one is more than 20 % off the other.  What makes less than a twentieth of a step does not
// count: no plan would change for it.
bool HasDrifted(double planned, double seen, double step_seconds);

// T(M) where sums of the buckets took so long in a run, and `idle` says how long they take on a
// machine that does nothing else: its times, times what the run made of them at the bucket's size;
// between two sizes along the logarithm, beyond them as the nearest.
ReduceTable AsSeen(const ReduceTable& idle, const std::vector<Range>& buckets,
                   const std::vector<double>& seconds);

class ScheduleWatch {
 public:
  static constexpr size_t kLeastSteps = 5;  // fewer say nothing

  // All is borrowed but the spec, whose start is not looked at.
  ScheduleWatch(const RunConfig& config, const ExchangeSpec& spec, ExecutionPlan& plan)
      : config_(config),
        spec_(spec),
        plan_(plan),
        ready_(spec.layer_gradients, AllReduceTimes::kSteps) {}

  ReadyTimes* ready() { return &ready_; }

  // At a boundary, behind `step`.  All ranks call it.  The first drift is reported.  Where there is one and
  // `replan` says so the plan is made anew, the same on all ranks, and obeyed by the exchange: true.
  bool Look(Exchange& exchange, int64_t step, bool replan);

  void Describe(PlanSummary& summary) const;  // rank 0

 private:
  bool Look(Transport& transport, AllReduceTimes& sums, int64_t step, bool replan);
  SeenTimes Join(Transport& transport, const AllReduceTimes& sums) const;
  bool HasDrifted(const SeenTimes& seen, int64_t step);
  bool Replan(Transport& transport, const SeenTimes& seen, int64_t step);

  const RunConfig& config_;
  const ExchangeSpec spec_;
  ExecutionPlan& plan_;
  ReadyTimes ready_;
  std::optional<PlanSummary::Drift> drift_;  // the first
  int64_t replans_ = 0;
};

}  // namespace dtrain
