// At a boundary, every rank hands in the times of its steps since the last one (results/rank_times.h).
#pragma once

#include <cstdint>
#include <string>

#include "framework/exchange/exchange.h"
#include "framework/train/run_accounts.h"
#include "framework/train/run_outputs.h"

namespace dtrain {

// Collective.  `role` is that of this rank's actors, `at` the position of the run.  `trained` holds the training
// results of its worker; it is taken and begins anew.
void ShareTimes(Exchange& exchange, const std::string& role, const TrainingPosition& at,
                EpochCounter& trained, RunAccounts& accounts, RunOutputs& outputs);

}  // namespace dtrain
