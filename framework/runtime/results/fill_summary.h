// What goes into the summary: what the config says, and what each rank tells about itself when a
// run ends.
#pragma once

#include <cstdint>

#include "framework/comm/transport.h"
#include "framework/core/execution_plan.h"
#include "framework/core/time.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/graph.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {

// What the summary says of any run, real or simulated, by its config alone.
void DescribeConfig(const RunConfig& config, Summary& summary);

// What the summary says of a run before it has run.
void DescribeRun(const RunConfig& config, const Graph& graph, const ExecutionPlan& plan,
                 Summary& summary);

struct RankReport {
  int64_t steps = 0;  // since the start or resume
  Nanos compute = 0;  // forward and backward
  ExchangeStats exchange;
};

WorkerSummary WorkerSummaryOf(int rank, const std::string& node, const RankReport& report);
StalenessSummary StalenessOf(const ProtocolReport& report);

// All ranks call it at rest.  On rank 0 it fills `workers_detail` (of ranks 0..workers-1), with
// several ranks `communication`, and `staleness` where a protocol has counted any.
void GatherReports(Transport& transport, const RankReport& mine, int workers, Summary& summary);

}  // namespace dtrain
