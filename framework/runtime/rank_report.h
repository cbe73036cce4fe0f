// What each rank tells about itself when a run ends, gathered into the summary.
#pragma once

#include <cstdint>

#include "framework/comm/transport.h"
#include "framework/core/time.h"
#include "framework/runtime/summary.h"
#include "framework/strategies/exchange.h"

namespace dtrain {

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
