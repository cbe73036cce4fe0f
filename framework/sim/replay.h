// Replay: an asynchronous run again, from the event orders that its ranks have recorded.
//
// Time plays no part.  Every actor gets its events in the recorded order, each as soon as what it
// carries exists; what the actors then do, and so the weights, is what they did - to the bit, where
// gradients are computed with the same plan.
#pragma once

#include <vector>

#include "framework/exchange/event_log.h"
#include "framework/sim/simulation.h"

namespace dtrain {

// `logs`: of each rank.  `setup` as for a numeric simulation; cluster, profile and trace do not
// count.  Returns the weights at the end.  Throws RunFileError when the logs do not belong to
// such a run.
std::vector<float> Replay(const SimulationSetup& setup,
                          const std::vector<std::vector<Event>>& logs);

}  // namespace dtrain
