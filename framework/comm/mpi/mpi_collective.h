// MPI's own all-reduce: the collective "mpi", and a plain blocking call for benchmarks to stand
// beside.
#pragma once

#include <span>

#include "framework/comm/transport.h"

namespace dtrain {

// MPI_Allreduce of the whole vector in place, as a user would write it.  Throws UsageError when the
// transport is not MPI's.
void PlainMpiAllreduce(Transport& transport, std::span<float> data);

}  // namespace dtrain
