// World: the ranks this process belongs to - those of an MPI launch, or this one alone, which does
// not initialise MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "framework/comm/mpi/mpi_runtime.h"
#include "framework/comm/transport.h"
#include "framework/core/error.h"

namespace dtrain {

// An error that every rank knows of: rank 0 tells it, all leave with its code.
class SharedError : public Error {
 public:
  using Error::Error;
};

class World {
 public:
  // The process's own arguments: it may start itself again with them (LimitSpinning), so nothing may
  // have been done before.
  World(int& argc, char**& argv);
  ~World();

  Transport& transport() { return *transport_; }
  bool launched() const { return mpi_ != nullptr; }

  // Tells `error` on stderr and returns its exit code.  One that the other ranks do not know of ends
  // them as well (MPI_Abort) and does not return.
  int Fail(const Error& error);

 private:
  std::unique_ptr<MpiRuntime> mpi_;
  std::unique_ptr<Transport> transport_;
};

// Runs `work` on every rank; when it throws an Error on some, all throw the lowest such rank's as
// SharedError.  For set-up, before the ranks depend on each other.
void TryTogether(Transport& transport, const std::function<void()>& work);

// "dtrain: error: ..." with the hint below it, on stderr.
void TellError(const Error& error);

}  // namespace dtrain
