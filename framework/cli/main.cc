#include "framework/cli/command.h"

int main(int argc, char** argv) { return dtrain::RunCommandLine(argc, argv); }
