// The command and the process behind the supervisor: mpirun with the flags we want.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

struct MpirunCommand {
  std::string path;                      // of mpirun
  std::vector<std::string> arguments;    // argv, argv[0] included
  std::vector<std::string> environment;  // "NAME=value"
};

struct MpirunOptions {
  int ranks = 1;
  std::string executable;  // empty: this program
  std::vector<std::string> arguments;
  std::filesystem::path status_folder;
  bool progress_terminal = false;
};

// The first mpirun of PATH; empty when there is none.
std::string FindMpirun();

// Throws UsageError when PATH has no mpirun.
MpirunCommand MakeMpirunCommand(const MpirunOptions& options);

// Starts it in a process group of its own, with no signal blocked and nothing to read; it gets TERM
// when this process dies.  Returns its pid.  Throws UsageError when it cannot be executed.
pid_t StartMpirun(const MpirunCommand& command);

}  // namespace dtrain
