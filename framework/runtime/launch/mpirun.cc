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
  // Without mpi_yield_when_idle, more ranks than cores spin against each other: a small all-reduce then takes
  // 16-32 ms instead of 20 us.
  const auto unless_set = [&](const std::string& name, const std::string& value) {
    if (!HasVariable(environment, name)) environment.push_back(name + "=" + value);
  };
  unless_set("OMPI_MCA_mpi_yield_when_idle", "1");
  // By default mpirun and its daemons wait for eight minutes before they believe that a link is cut.
  unless_set("OMPI_MCA_oob_tcp_keepalive_time", "20");
  unless_set("OMPI_MCA_oob_tcp_keepalive_intvl", "5");
  unless_set("OMPI_MCA_oob_tcp_keepalive_probes", "4");
  // What an mpirun that is killed leaves behind then goes with the supervisor's folders.
  unless_set("OMPI_MCA_orte_tmpdir_base", options.status_folder.string());
  for (const char* const user : {"btl_vader", "osc_sm", "osc_rdma"}) {
    if (options.shared_memory.empty()) break;
    unless_set(fmt::format("OMPI_MCA_{}_backing_directory", user), options.shared_memory.string());
  }
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
  for (const std::string& argument : options.arguments) {
    // Alone, mpirun would take it for the begin of another program: `--output :` becomes `--output=:`.
    if (argument == ":") {
      command.arguments.back() += "=:";
    } else {
      command.arguments.push_back(argument);
    }
  }
  command.environment = RankEnvironment(options);
  return command;
}

pid_t StartMpirun(const ProgramCommand& command) { return StartProgram(command, kNoMpirun); }

}  // namespace dtrain
