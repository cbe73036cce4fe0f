// CollectiveRules: parameters of a collective that has a schedule.  ScheduledCollective runs it
// with them, and the simulator computes its cost from them.
#pragma once

#include <cstdint>

#include "framework/comm/collective_schedule.h"

namespace dtrain {

struct CollectiveRules {
  CollectiveScheduler scheduler = nullptr;
  // A vector is split into chunks of `chunk_bytes`.  Each chunk runs through the schedule, up to
  // `lanes` of them at a time.  Chunks of 128-512 KB stay in the second-level cache while they are
  // added (measured with `dtrain bench allreduce`).
  int64_t chunk_bytes = 512 << 10;
  int lanes = 4;
  int64_t whole_bytes = 0;  // a vector of at most so many bytes is not split
  // True if a round keeps only some ranks busy, so that other chunks can use the others.  The time
  // of a long vector is then that of chunks that closely follow one another, not of rounds with the
  // whole vector.
  bool pipelined = false;
  bool by_nodes = false;  // the order of additions depends on which ranks share a node
  CollectiveScheduler small_scheduler = nullptr;  // for whole vectors of at most small_bytes
  int64_t small_bytes = 0;
};

// Returns the rules for a number of ranks.
using CollectiveRulesOf = CollectiveRules (*)(int world);

}  // namespace dtrain
