// At a boundary, every rank hands in the times of its steps since the last one (results/rank_times.h).
#pragma once

#include <cstdint>
#include <string>

#include "framework/exchange/exchange.h"
#include "framework/train/run_accounts.h"
#include "framework/train/run_outputs.h"
#include "framework/train/run_session.h"

namespace dtrain {

// Collective.  `role` is that of this rank's actors.  `trained` holds the training results of its worker; it is taken,
// added to those of the session, and begins anew.
void ShareTimes(Exchange& exchange, const std::string& role, EpochCounter& trained,
                RunAccounts& accounts, RunSession& session, RunOutputs& outputs);

}  // namespace dtrain
