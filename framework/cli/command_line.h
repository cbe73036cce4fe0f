// The command line: one CLI11 subcommand a command, one file each (<name>_command.cc).
#pragma once

namespace dtrain {

// Runs the program and returns its exit code (README, "Exit codes").  Catches everything: errors are
// told on stderr with their hint.
int RunCommandLine(int argc, char** argv);

}  // namespace dtrain
