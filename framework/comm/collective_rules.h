// CollectiveRules: how a collective that is a schedule is carried out.  ScheduledCollective runs it by them, the
// simulator costs it by them.
#pragma once

#include <cstdint>

#include "framework/comm/collective_schedule.h"

namespace dtrain {

struct CollectiveRules {
  CollectiveScheduler scheduler = nullptr;
  // A vector is cut into chunks of so many bytes, each of which goes through the schedule, so many at a
  // time.  Chunks of 128-512 KB stay in the second-level cache while they are added (measured:
  // `dtrain bench allreduce`).
  int64_t chunk_bytes = 512 << 10;
  int lanes = 4;
  int64_t whole_bytes = 0;  // a vector of no more bytes is not cut
  // A round keeps only some ranks busy, and other chunks keep the others so: the time of a long
  // vector is that of chunks close behind one another, not of rounds with the whole vector.
  bool pipelined = false;
  bool by_nodes = false;  // which ranks share a node decides the order of additions
  CollectiveScheduler small_scheduler = nullptr;  // for whole vectors of at most small_bytes
  int64_t small_bytes = 0;
};

// For so many ranks.
using CollectiveRulesOf = CollectiveRules (*)(int world);

}  // namespace dtrain
