// Other programs as children of this one: mpirun behind the supervisor, the runs of a sweep.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/runtime/launch/hosts.h"

namespace dtrain {

struct ProgramCommand {
  std::string path;
  std::vector<std::string> arguments;    // argv, argv[0] included
  std::vector<std::string> environment;  // "NAME=value"
  std::string log;                       // file for stdout and stderr; "": this process's own
  int out = -1, err = -1;                // or descriptors for them; -1: this process's own
  int open_files = 0;  // it may have at least so many, as far as the hard limit goes
};

// This process's, as "NAME=value".
std::vector<std::string> OwnEnvironment();

// Starts it in a process group of its own, with no signal blocked and nothing to read; it gets TERM
// when this process dies.  Returns its pid.  Throws UsageError with `hint` when it cannot be
// executed.
pid_t StartProgram(const ProgramCommand& command, const std::string& hint = "");

// The exit code of a program that signal n has killed is this + n, as a shell has it.
inline constexpr int kSignalBase = 128;

int CodeOfStatus(int status);  // the exit code of an ended child, from waitpid's status

struct ProgramEvents {
  std::function<void(size_t command)> started;
  std::function<void(size_t command, int code)> ended;
  std::function<void()> waits = {};  // some times a second
};

// Runs the commands in their order, `at_once` at a time.  A stop signal (INT, TERM, USR1, USR2,
// HUP) reaches those that run as INT, a second one again, and no more are started; returns its
// number when all have ended, 0 without one.  Call it before other threads start.
int RunPrograms(const std::vector<ProgramCommand>& commands, int at_once,
                const ProgramEvents& events);

// mpirun (mpirun.cc), with the flags we want.
struct MpirunOptions {
  int ranks = 1;
  std::string executable;  // empty: this program
  std::vector<std::string> arguments;
  std::vector<HostSlots> hosts;         // empty: this machine, with any number of ranks
  std::filesystem::path status_folder;  // Open MPI has its session in it, too
  std::filesystem::path shared_memory;  // folder for what ranks share; empty: where Open MPI likes
  int out = -1, err = -1;  // of ProgramCommand; with `err`, the reader shows rank 0's status line
};

// In a bundle its own, else the first mpirun of PATH; empty when there is none.
std::string FindMpirun();

// Throws UsageError when PATH has no mpirun.
ProgramCommand MakeMpirunCommand(const MpirunOptions& options);

// StartProgram, with a hint for those who have no mpirun.
pid_t StartMpirun(const ProgramCommand& command);

}  // namespace dtrain
