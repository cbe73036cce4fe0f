// The MPI runtime of this process, initialised by main.cc.
#pragma once

#include "framework/comm/mpi/mpi_runtime.h"

namespace dtrain {

MpiRuntime& SharedRuntime();
Transport& SharedTransport();

}  // namespace dtrain
