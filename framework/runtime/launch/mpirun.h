// The command and the process behind the supervisor: mpirun with the flags we want.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/runtime/launch/child_program.h"

namespace dtrain {

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
ProgramCommand MakeMpirunCommand(const MpirunOptions& options);

// StartProgram, with a hint for those who have no mpirun.
pid_t StartMpirun(const ProgramCommand& command);

}  // namespace dtrain
