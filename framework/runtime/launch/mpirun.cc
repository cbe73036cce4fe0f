#include "framework/runtime/launch/child_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/process.h"
#include "framework/runtime/launch/status_record.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr char kNoMpirun[] = "install Open MPI (Debian: openmpi-bin), or run with --workers 1";

fs::path MpirunOrThrow() {
  const fs::path path = FindMpirun();
  if (path.empty()) throw UsageError("several workers need mpirun, and PATH has none", kNoMpirun);
  return path;
}

bool HasVariable(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name + "=")) return true;
  }
  return false;
}

std::vector<std::string> RankEnvironment(const MpirunOptions& options) {
  std::vector<std::string> environment = OwnEnvironment();
  // Without it, more ranks than cores spin against each other: a small all-reduce then takes 16-32
  // ms instead of 20 us.
  const std::string yield = "OMPI_MCA_mpi_yield_when_idle";
  if (!HasVariable(environment, yield)) environment.push_back(yield + "=1");
  environment.push_back(
      fmt::format("{}={}", kStatusFolderVariable, options.status_folder.string()));
  environment.push_back(fmt::format("{}={:d}", kProgressVariable, options.progress_terminal));
  return environment;
}

}  // namespace

std::string FindMpirun() {
  if (const fs::path bundle = BundleFolder(); !bundle.empty()) return bundle / "bin/mpirun";
  const char* search = std::getenv("PATH");
  std::istringstream folders(search == nullptr ? "" : search);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder) / "mpirun";
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

ProgramCommand MakeMpirunCommand(const MpirunOptions& options) {
  ProgramCommand command;
  command.path = MpirunOrThrow();
  command.arguments = {"mpirun", "--oversubscribe", "--bind-to", "none", "--quiet"};
  if (::geteuid() == 0) command.arguments.emplace_back("--allow-run-as-root");
  const std::string executable =
      options.executable.empty() ? ProgramFile().string() : options.executable;
  for (const std::string& argument :
       {std::string("-x"), std::string(kStatusFolderVariable), std::string("-x"),
        std::string(kProgressVariable), std::string("-n"), std::to_string(options.ranks),
        executable}) {
    command.arguments.push_back(argument);
  }
  command.arguments.insert(command.arguments.end(), options.arguments.begin(),
                           options.arguments.end());
  command.environment = RankEnvironment(options);
  return command;
}

pid_t StartMpirun(const ProgramCommand& command) { return StartProgram(command, kNoMpirun); }

}  // namespace dtrain
