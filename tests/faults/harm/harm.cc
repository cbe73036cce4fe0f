// Failures of a rank that no signal causes by itself.  inject.py loads this library into the ranks (LD_PRELOAD) and
// sends a signal when the failure is to happen.
//
//   SIGRTMIN+1  the next MPI call ends the process by exit(9), as a library that gives up
//   SIGRTMIN+2  the next MPI call throws, as a bug of dtrain would
//   SIGRTMIN+3  from now on fsync(2) fails with EIO, as on a broken disk
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace {

enum Harm : int { kNone, kExit, kThrow, kFailedFsync };
std::atomic<int> harm = kNone;
static_assert(std::atomic<int>::is_always_lock_free);

__attribute__((constructor)) void Install() {
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int signal) { harm = signal - SIGRTMIN; };
  for (const Harm kind : {kExit, kThrow, kFailedFsync}) {
    ::sigaction(SIGRTMIN + kind, &action, nullptr);
  }
}

void DoHarm() {
  switch (harm) {
    case kExit:
      harm = kNone;
      std::exit(9);
    case kThrow:
      harm = kNone;
      throw std::runtime_error("injected");
    default:
      break;
  }
}

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  static auto* const next = Next<decltype(MPI_Test)>("MPI_Test");
  DoHarm();
  return next(request, flag, status);
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  static auto* const next = Next<decltype(MPI_Iprobe)>("MPI_Iprobe");
  DoHarm();
  return next(source, tag, comm, flag, status);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  static auto* const next = Next<decltype(MPI_Isend)>("MPI_Isend");
  DoHarm();
  return next(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  static auto* const next = Next<decltype(MPI_Irecv)>("MPI_Irecv");
  DoHarm();
  return next(data, count, type, from, tag, comm, request);
}

int fsync(int fd) {
  static auto* const next = Next<int(int)>("fsync");
  if (harm != kFailedFsync) return next(fd);
  errno = EIO;
  return -1;
}

}  // extern "C"
