// Which collectives there are: "ordered" and "ring" register in collective.cc, "mpi" in comm/mpi.
#pragma once

#include <memory>

#include "framework/comm/collective.h"
#include "framework/core/registry.h"

namespace dtrain {

using CollectiveMaker = std::unique_ptr<Collective> (*)(Transport& transport,
                                                        const CollectiveOptions& options);
using CollectiveRegistry = Registry<CollectiveMaker>;

}  // namespace dtrain
