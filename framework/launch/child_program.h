// Starts other programs as children of this one: the supervisor's mpirun, and the runs of a sweep.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/launch/hosts.h"

namespace dtrain {

struct ProgramCommand {
  std::string path;
  std::vector<std::string> arguments;    // argv, argv[0] included
  std::vector<std::string> environment;  // "NAME=value"
  std::string log;                       // file for stdout and stderr; "": this process's own
  // Descriptors for stdout and stderr; -1: this process's own.
  int out = -1, err = -1;
  int open_files = 0;  // least limit of open files for the program; the hard limit caps it
};

// Returns this process's environment, as "NAME=value".
std::vector<std::string> OwnEnvironment();

// Starts the program in a process group of its own, with no signal blocked and an empty stdin.  It gets TERM when this
// process dies.  Returns its pid.  Throws UsageError with `hint` if it cannot be executed.
pid_t StartProgram(const ProgramCommand& command, const std::string& hint = "");

// A program killed by signal n has the exit code kSignalBase + n, as in a shell.
inline constexpr int kSignalBase = 128;

int CodeOfStatus(int status);  // returns the exit code of an ended child, from waitpid's status

struct ProgramEvents {
  std::function<void(size_t command)> started;
  std::function<void(size_t command, int code)> ended;
  std::function<void()> waits = {};  // called several times a second
};

// Runs the commands in their order, `at_once` at a time.  A stop signal (INT, TERM, USR1, USR2, HUP) is passed to the
// running ones as INT, a second one again, and no more commands are started.  Returns the signal's number when all have
// ended, or 0 without a signal.  Call it before other threads start.
int RunPrograms(const std::vector<ProgramCommand>& commands, int at_once,
                const ProgramEvents& events);

// Holds the options of an mpirun; mpirun.cc adds the flags that every run needs.
struct MpirunOptions {
  int ranks = 1;
  std::string executable;  // empty: this program
  std::vector<std::string> arguments;
  std::vector<HostSlots> hosts;         // empty: this machine, with any number of ranks
  std::filesystem::path status_folder;  // Open MPI's session is in it, too
  // The ranks' shared memory is in this folder; empty: Open MPI's default.
  std::filesystem::path shared_memory;
  // They are as in ProgramCommand; with `err`, its reader shows rank 0's status line.
  int out = -1, err = -1;
};

// Returns the path of mpirun: a bundle's own, else the first one in PATH.  Empty if there is none.
std::string FindMpirun();

// Returns the command that runs mpirun with these options.  Throws UsageError if PATH has no mpirun.
ProgramCommand MakeMpirunCommand(const MpirunOptions& options);

// Returns a command that starts /bin/true instead of the ranks, in the same way, and writes mpirun's own messages to
// `log`: they say why no rank has started, which --quiet hides in `command`.
ProgramCommand MakeMpirunProbe(ProgramCommand command, const std::filesystem::path& log);

// Calls StartProgram, with a hint for users without mpirun.
pid_t StartMpirun(const ProgramCommand& command);

}  // namespace dtrain
