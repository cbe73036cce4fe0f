// Which collectives there are: "ordered" and "ring" register in collective.cc, "mpi" in comm/mpi.
#pragma once

#include <memory>
#include <string>

#include "framework/comm/collective.h"
#include "framework/comm/plan.h"
#include "framework/core/registry.h"

namespace dtrain {

using CollectiveMaker = std::unique_ptr<Collective> (*)(Transport& transport,
                                                        const CollectiveOptions& options);
struct CollectiveEntry {
  CollectiveMaker make;
  std::string help;
  Planner planner = nullptr;  // what a simulation prices; null: it has no plan of ours
};
using CollectiveRegistry = Registry<CollectiveEntry>;

}  // namespace dtrain
