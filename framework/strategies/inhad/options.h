// InhadOptions: the keys of strategy `inhad` (inhad.md 4.5).
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/core/time.h"

namespace dtrain::inhad {

enum class Modulate {
  kExact,  // each gradient times 1 / max(1, its staleness)
  kMean,   // a node's sum times 1 / max(1, the mean staleness in it)
  kOff,
};

enum class Late {
  kWait,  // no round opens that would make a gradient older than s_max: nothing is lost
  kDrop,  // a gradient older than s_max is thrown away, and counted
  kKeep,  // no bound
};

struct InhadOptions {
  int64_t n = 1;       // splitting parameter of n-softsync, at most the number of workers
  int64_t s_max = 0;   // staleness bound; 0: 2 n + 1
  bool share = false;  // the rate of an update follows the number of its gradients
  Modulate modulate = Modulate::kExact;
  Late late = Late::kWait;
  bool lockstep = false;      // a worker starts its next step only with a newer version
  bool broadcast_all = true;  // new weights are sent to all nodes; else to those of the round
  bool pipelined = false;     // a round may open while weights are still being sent
  Nanos in_interval = 0;      // minimum time between two INs of a node
  Nanos pull_timeout = 0;     // a silent node is asked, then given up, after this time; 0: never
  bool may_fail = false;      // workers may die (ActorSetup)

  // Returns the factor of the learning rate for an update of `gradients` gradients.  Each gradient then has the weight
  // that it would have in the smallest update.
  double RateOf(int64_t gradients, int workers) const {
    if (!share) return 1;
    return static_cast<double>(gradients) / static_cast<double>(GradientsOfUpdate(workers));
  }
  // Returns the minimum number of gradients of an update, with so many workers.
  int64_t GradientsOfUpdate(int workers) const { return std::max<int64_t>(1, workers / n); }
  int64_t staleness_bound() const { return s_max > 0 ? s_max : 2 * n + 1; }
};

}  // namespace dtrain::inhad
