// Which collectives there are; each registers itself by a line of DTRAIN_COLLECTIVE.
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

// `make` is a CollectiveMaker, `planner` a Planner or null.
#define DTRAIN_COLLECTIVE(name, make, planner, help_text)           \
  [[maybe_unused]] static const bool make##_collective_registered = \
      ::dtrain::CollectiveRegistry::Add(name, {make, help_text, planner})
