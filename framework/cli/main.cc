#include "framework/cli/command_line.h"

int main(int argc, char** argv) { return dtrain::RunCommandLine(argc, argv); }
