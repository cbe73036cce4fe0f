// MpiRuntime: MPI from initialisation to finalisation, the transport over it, and a plain
// MPI_Allreduce for comparison in benchmarks.
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

// True if a launcher (mpirun, or srun --mpi=pmix) started this process as one rank of several.
// Reads only the environment; MPI need not be initialised.
bool InsideMpiLaunch();
// Returns the number of ranks of that launch, by the environment as well; 0 where it is not known.
int RanksOfLaunch();

struct MpiTransportOptions {
  // Messages of more bytes are sent as one element of a derived type, since MPI counts with an int.
  size_t plain_bytes_max = 1u << 30;
};

class MpiRuntime {
 public:
  // Throws UsageError when the MPI library cannot be used by a thread other than the main one.
  MpiRuntime(int& argc, char**& argv);
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  // Makes a transport over all ranks, with communicators of its own.  It is a collective call.  The
  // transport must be destroyed before the runtime.
  std::unique_ptr<Transport> MakeTransport(const MpiTransportOptions& options = {});

  // Ends every rank of the job at once; the launcher's exit status becomes `code`.
  [[noreturn]] static void Abort(ExitCode code);

 private:
  int exceptions_at_start_;
};

// Calls MPI_Allreduce in place for the whole vector.  Throws UsageError if the transport is not
// MPI's.
void PlainMpiAllreduce(Transport& transport, std::span<float> data);

}  // namespace dtrain
