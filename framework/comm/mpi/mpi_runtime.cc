#include "framework/comm/mpi/mpi_runtime.h"

#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "framework/comm/mpi/mpi_transport.h"
#include "framework/core/log.h"

namespace dtrain {
namespace {

// MPI_Init returns when all ranks have called it.  This thread logs warnings while it waits, and
// ends the process if some rank never starts.
class StartWatch {
 public:
  StartWatch() : thread_([this](std::stop_token stop) { Watch(stop); }) {}

 private:
  void Watch(std::stop_token stop) {
    constexpr std::chrono::seconds kSayAfter{30};
    constexpr int kSaidAtMost = 20;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    for (int said = 0;
         !wake.wait_for(lock, stop, kSayAfter, [&] { return stop.stop_requested(); });) {
      if (++said < kSaidAtMost) {
        log::Warning("MPI_Init still waits for a rank to start");
        continue;
      }
      log::Error("MPI_Init has waited for {} s: a rank does not start", kSayAfter.count() * said);
      std::_Exit(static_cast<int>(ExitCode::kStalled));  // the launcher ends the others
    }
  }

  std::jthread thread_;
};

}  // namespace

bool InsideMpiLaunch() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return true;
  return std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

int RanksOfLaunch() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* const ranks = std::getenv(name)) return std::atoi(ranks);
  }
  return 0;
}

MpiRuntime::MpiRuntime(int& argc, char**& argv) : exceptions_at_start_(std::uncaught_exceptions()) {
  int provided = MPI_THREAD_SINGLE;
  // Open MPI would catch SIGSEGV and others to print a stack trace.  For that it allocates memory, so a rank that crashes
  // while it allocates would wait for itself, and the others for it, for ever.
  setenv("OMPI_MCA_opal_signal", "", 0);
  {
    const StartWatch watch;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  }
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
