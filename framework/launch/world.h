// World: the ranks that this process belongs to: those of an MPI launch, or this one alone, which does not initialise
// MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "framework/comm/mpi/mpi_runtime.h"
#include "framework/comm/transport.h"
#include "framework/core/error.h"

namespace dtrain {

// An error that every rank knows of: rank 0 reports it, and all ranks end with its code.
class SharedError : public Error {
 public:
  using Error::Error;
};

class World {
 public:
  World(int& argc, char**& argv);
  ~World();

  Transport& transport() { return *transport_; }

  // Reports `error` on stderr and returns its exit code.  If the other ranks do not know of the error, ends them as
  // well (MPI_Abort) and does not return.
  int Fail(const Error& error);

 private:
  bool launched() const { return mpi_ != nullptr; }

  std::unique_ptr<MpiRuntime> mpi_;
  std::unique_ptr<Transport> transport_;
};

// Runs `body` in the world of this process and returns its exit code.  Exceptions are reported (World::Fail) before MPI
// is finalised.
int RunOnRanks(int argc, char** argv, const std::function<int(World&)>& body);

// Runs `work` on every rank.  If it throws an Error on some ranks, all ranks throw that of the lowest one as
// SharedError. For set-up, before the ranks depend on each other.
void TryTogether(Transport& transport, const std::function<void()>& work);

// Returns any exception, including those of libraries, as an error that can be reported.
Error AsError(const std::exception& exception);

// Prints the error and its hint on stderr: as log lines, or as one line of JSON after TellErrorsAsJson(true).
void TellError(const Error& error);
void TellErrorsAsJson(bool as_json);  // called before the process has other threads

}  // namespace dtrain
