// At a boundary, every rank hands in how its steps went since the last one (results/rank_times.h).
#pragma once

#include <cstdint>
#include <string>

#include "framework/exchange/exchange.h"
#include "framework/runtime/run/run_accounts.h"
#include "framework/runtime/run/run_outputs.h"

namespace dtrain {

// Every rank calls it.  `role`: of this rank's actors; `at`: where the run is; `trained`: what its worker
// found of its samples, which begins anew.
void ShareTimes(Exchange& exchange, const std::string& role, const TrainingPosition& at,
                EpochCounter& trained, RunAccounts& accounts, RunOutputs& outputs);

}  // namespace dtrain
