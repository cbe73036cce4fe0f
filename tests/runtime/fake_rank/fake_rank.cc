// Replaces dtrain under the supervisor: a rank with the behaviour that the test requests.
//
//   fake_rank FOLDER BEHAVIOUR [--resume auto]
//
// With FAKE_RANK_ALONE in the environment it does not use MPI, for tests with a fake mpirun.  It appends a line to
// FOLDER/starts at every start and writes its arguments to FOLDER/arguments.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "framework/core/status_line.h"
#include "framework/launch/status_record.h"
#include "framework/launch/stop_signal.h"

namespace {

using dtrain::Doing;
using dtrain::StatusRecord;

struct Rank {
  int rank = 0;
  int ranks = 1;
  std::string behaviour;
  bool resumed = false;
  bool alone = false;
  StatusRecord status;
};

void Note(const std::string& folder, const std::string& name, const std::string& line) {
  std::ofstream(std::filesystem::path(folder) / name, std::ios::app) << line << "\n";
}

int End(Rank& self, int code, const char* message = "") {
  self.status.End(code, message);
  if (!self.alone) MPI_Finalize();
  return code;
}

// Waits for a stop signal as a trainer does, for at most a minute.
int TrainUntilStopped(Rank& self) {
  for (int step = 1; step < 6000 && !dtrain::StopRequested(); ++step) {
    self.status.Update(Doing::kTraining, step);
    ::usleep(10'000);
  }
  int stop = dtrain::StopRequested() ? 1 : 0;
  if (!self.alone) MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return End(self, stop == 1 ? 75 : 1);
}

// Runs for several turns of the supervisor's loop.
int TrainBriefly(Rank& self) {
  for (int step = 1; step < 40; ++step) {
    self.status.Update(Doing::kTraining, step);
    ::usleep(10'000);
  }
  return End(self, dtrain::StopRequested() ? 75 : 0);
}

int Fail(Rank& self, int code, const char* message) {
  self.status.Update(Doing::kTraining, 7);
  self.status.End(code, message);
  if (!self.alone) MPI_Abort(MPI_COMM_WORLD, code);
  return code;
}

int BeKilled(Rank& self) {
  self.status.Update(Doing::kTraining, 815);
  if (!self.alone) MPI_Barrier(MPI_COMM_WORLD);
  if (self.rank == 1) ::raise(SIGKILL);
  for (;;) ::pause();
}

int Behave(Rank& self) {
  if (self.behaviour == "succeed") {
    std::printf("rank %d of %d\n", self.rank, self.ranks);
    return End(self, 0);
  }
  if (self.behaviour == "train" || self.behaviour == "train-silently")
    return TrainUntilStopped(self);
  if (self.behaviour == "train-briefly") return TrainBriefly(self);
  if (self.behaviour == "diverge" && self.rank == 1) return Fail(self, 5, "loss is nan");
  if (self.behaviour == "killed") return BeKilled(self);
  if (self.behaviour == "killed-once") return self.resumed ? End(self, 0) : BeKilled(self);
  if (self.behaviour == "on-its-way-out") self.status.End(0);
  for (;;) ::pause();  // ignores stop signals
}

}  // namespace

int main(int argc, char** argv) {
  const dtrain::StopSignals signals;
  const bool alone = std::getenv("FAKE_RANK_ALONE") != nullptr;
  int rank = alone ? std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")) : 0, ranks = 0;
  if (!alone) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  }
  const std::string folder = argv[1];
  const bool resumed =
      argc > 4 && std::string(argv[3]) == "--resume" && std::string(argv[4]) == "auto";
  const std::string behaviour = argv[2];
  const bool is_silent = behaviour == "silent" || behaviour == "train-silently";
  Rank self = {rank,      ranks,
               behaviour, resumed,
               alone,     is_silent ? StatusRecord("", rank) : StatusRecord::OfThisProcess(rank)};
  Note(folder, "pids", std::to_string(::getpid()));
  if (rank == 0) Note(folder, "starts", resumed ? "resumed" : "fresh");
  if (rank == 0) Note(folder, "progress", std::getenv(dtrain::status_line::kProgressVariable));
  const int code = Behave(self);
  std::fflush(stdout);
  ::_exit(code);  // skips the leak check, which would report MPI's memory
}
