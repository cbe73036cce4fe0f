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
  World(int& argc, char**& argv);
  ~World();

  Transport& transport() { return *transport_; }

  // Tells `error` on stderr and returns its exit code.  One that the other ranks do not know of
  // ends them as well (MPI_Abort) and does not return.
  int Fail(const Error& error);

 private:
  bool launched() const { return mpi_ != nullptr; }

  std::unique_ptr<MpiRuntime> mpi_;
  std::unique_ptr<Transport> transport_;
};

// Runs `body` in the world of this process and returns its exit code; whatever it throws is told
// (World::Fail) before MPI ends.
int RunOnRanks(int argc, char** argv, const std::function<int(World&)>& body);

// Runs `work` on every rank; when it throws an Error on some, all throw the lowest such rank's as
// SharedError.  For set-up, before the ranks depend on each other.
void TryTogether(Transport& transport, const std::function<void()>& work);

// Any exception as an error that can be told: what came from a library, too.
Error AsError(const std::exception& exception);

// "dtrain: error: ..." with the hint below it, on stderr.
void TellError(const Error& error);

}  // namespace dtrain
