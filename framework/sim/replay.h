// Replay: repeats an asynchronous run from the event orders that its ranks have recorded.
//
// It does not depend on time.  Every actor gets its events in the recorded order, each as soon as
// the message or step that it belongs to exists.  The actors then do the same as in the recorded
// run, and the weights have the same bits if gradients are computed with the same execution plan.
#pragma once

#include <vector>

#include "framework/exchange/event_log.h"
#include "framework/sim/simulation.h"

namespace dtrain {

// Returns the weights at the end of the run.  `logs` has the events of each rank.  `setup` is that
// of a numeric simulation, of which cluster, profile and trace are not used.  Throws RunFileError
// if the logs do not belong to such a run.
std::vector<float> Replay(const SimulationSetup& setup,
                          const std::vector<std::vector<Event>>& logs);

}  // namespace dtrain
