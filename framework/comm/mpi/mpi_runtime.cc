#include "framework/comm/mpi/mpi_runtime.h"

#include <mpi.h>

#include <cstdlib>
#include <exception>

#include "framework/comm/mpi/mpi_transport.h"

namespace dtrain {

bool InsideMpiLaunch() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return true;
  return std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

MpiRuntime::MpiRuntime(int& argc, char**& argv) : exceptions_at_start_(std::uncaught_exceptions()) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    throw UsageError("this MPI library lets only the main thread call it (thread level " +
                         std::to_string(provided) + ")",
                     "build MPI with thread support (MPI_THREAD_SERIALIZED or better)");
  }
}

MpiRuntime::~MpiRuntime() {
  if (std::uncaught_exceptions() > exceptions_at_start_) Abort(ExitCode::kInternal);
  MPI_Finalize();
}

std::unique_ptr<Transport> MpiRuntime::MakeTransport(const MpiTransportOptions& options) {
  return std::make_unique<MpiTransport>(options);
}

void MpiRuntime::Abort(ExitCode code) {
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  std::abort();
}

}  // namespace dtrain
