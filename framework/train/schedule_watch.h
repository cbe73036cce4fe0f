// ScheduleWatch: checks whether the times by which a schedule was planned still hold, and plans anew if they do not.
//
// The exchange and the trainer measure, over the last 32 steps, when gradients are ready and how long all-reduces take;
// at a boundary all ranks combine these.  All-reduces during a run may take longer than those measured before it, since
// they share the machine with the computation.  Such a plan was made from the wrong times, and the user should know
// that, too.
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
#include "framework/results/summary.h"
#include "framework/setup/run_config.h"
#include "framework/train/ready_times.h"

namespace dtrain {

// Holds the measured times of a step, combined over all ranks.
struct SeenTimes {
  std::vector<double> ready;  // ready time of each layer's gradient at the slowest worker, seconds
  std::vector<double> sums;   // all-reduce time of each bucket, seconds

  double compute_seconds() const { return ready.back(); }
  double sum_seconds() const;
};

// True if `seen` is more than 20 % off `planned`.  A difference below a twentieth of a step does not count: no plan
// would change for it.
bool HasDrifted(double planned, double seen, double step_seconds);

// Returns T(M) as seen in a run: the table `idle`, measured on an otherwise idle machine, with each entry multiplied by
// a factor.  At a bucket's size the factor is the all-reduce time `seconds` of that bucket in the run, divided by the
// idle time.  Between two sizes it is interpolated over the logarithm of the size; beyond them it is the nearest one.
ReduceTable AsSeen(const ReduceTable& idle, const std::vector<Range>& buckets,
                   const std::vector<double>& seconds);

class ScheduleWatch {
 public:
  static constexpr size_t kLeastSteps = 5;  // fewer steps are not compared

  // Borrows everything but the spec, whose `start` is not used.
  ScheduleWatch(const RunConfig& config, const ExchangeSpec& spec, ExecutionPlan& plan)
      : config_(config),
        spec_(spec),
        plan_(plan),
        ready_(spec.layer_gradients, AllReduceTimes::kSteps) {}

  ReadyTimes* ready() { return &ready_; }

  // Collective, at the boundary after `step`.  Compares the times and warns of the first drift.  If they have drifted
  // and `replan` is set, makes a new plan, the same on all ranks, gives its buckets to the exchange and returns true.
  bool Look(Exchange& exchange, int64_t step, bool replan);

  void Describe(PlanSummary& summary) const;  // adds the drift and the number of new plans; rank 0

 private:
  bool Look(Transport& transport, AllReduceTimes& sums, int64_t step, bool replan);
  SeenTimes Join(Transport& transport, const AllReduceTimes& sums) const;
  bool CheckDrift(const SeenTimes& seen, int64_t step);
  bool Replan(Transport& transport, const SeenTimes& seen, int64_t step);

  const RunConfig& config_;
  const ExchangeSpec spec_;
  ExecutionPlan& plan_;
  ReadyTimes ready_;
  std::optional<PlanSummary::Drift> drift_;  // the first drift
  int64_t replans_ = 0;
};

}  // namespace dtrain
