// PlanRules: how a collective that is a plan is carried out.  PlanCollective runs it by them, the
// simulator prices it by them.
#pragma once

#include <cstdint>

#include "framework/comm/plan.h"

namespace dtrain {

struct PlanRules {
  Planner planner = nullptr;
  // A vector is cut into chunks of so many bytes, each of which goes through the plan, so many at a
  // time.  Pieces of 128-512 KB stay in the second-level cache while they are added (measured:
  // `dtrain bench allreduce`).
  int64_t chunk_bytes = 512 << 10;
  int lanes = 4;
  int64_t whole_bytes = 0;  // a vector of no more bytes is not cut
  // A round keeps only some ranks busy, and other chunks keep the others so: the time of a long
  // vector is that of chunks close behind one another, not of rounds with the whole vector.
  bool pipelined = false;
  bool by_nodes = false;            // which ranks share a node decides the order of additions
  Planner small_planner = nullptr;  // for whole vectors of at most small_bytes
  int64_t small_bytes = 0;
};

// For so many ranks.
using PlanRulesOf = PlanRules (*)(int world);

}  // namespace dtrain
