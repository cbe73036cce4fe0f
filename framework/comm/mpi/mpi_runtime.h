// MpiRuntime: MPI from initialisation to finalisation, the transport over it, and a plain call for
// benchmarks to stand beside.
//
// One thread at a time may use MPI (MPI_THREAD_SERIALIZED): start-up on the main thread, then the
// exchange thread.  When the scope is left by an exception the whole job is ended with MPI_Abort,
// because the other ranks would wait for this one forever.
#pragma once

#include <memory>
#include <span>

#include "framework/comm/transport.h"
#include "framework/core/error.h"

namespace dtrain {

// Whether a launcher (mpirun, or srun --mpi=pmix) started this process as one rank of several.
// Reads the environment only; MPI need not be initialised.
bool InsideMpiLaunch();

struct MpiTransportOptions {
  // Messages above this many bytes travel as one element of a derived type: MPI counts with an int.
  size_t plain_bytes_max = 1u << 30;
};

class MpiRuntime {
 public:
  // Throws UsageError when the MPI library cannot be used by a thread other than the main one.
  MpiRuntime(int& argc, char**& argv);
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  // A transport over all ranks, with communicators of its own.  Collective: every rank calls it.
  // It must be destroyed before the runtime.
  std::unique_ptr<Transport> MakeTransport(const MpiTransportOptions& options = {});

  // Ends every rank of the job at once; the launcher's exit status becomes `code`.
  [[noreturn]] static void Abort(ExitCode code);

 private:
  int exceptions_at_start_;
};

// MPI_Allreduce of the whole vector in place, as a user would write it.  Throws UsageError when the
// transport is not MPI's.
void PlainMpiAllreduce(Transport& transport, std::span<float> data);

}  // namespace dtrain
