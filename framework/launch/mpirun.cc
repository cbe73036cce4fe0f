#include "framework/launch/child_program.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/status_line.h"
#include "framework/core/text.h"
#include "framework/launch/status_record.h"

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

// Open MPI takes four megabytes of shared memory for each rank, and a little more.
constexpr uint64_t kMegabytesOfRank = 5;

bool HasRoomFor(int ranks, const fs::path& shared_memory) {
  struct statvfs disk = {};
  return ::statvfs(shared_memory.c_str(), &disk) == 0 &&
         disk.f_bavail * disk.f_frsize >= static_cast<uint64_t>(ranks) * kMegabytesOfRank << 20;
}

// Returns the limit of open files that mpirun needs: it has some thirty files open and four for each of its ranks; a
// rank needs fewer.  With too low a limit, mpirun fails in the middle of a start and waits forever.
int OpenFilesFor(const MpirunOptions& options) {
  int started_here = options.ranks;
  if (!options.hosts.empty()) {
    const auto most = std::ranges::max_element(options.hosts, {}, &HostSlots::slots);
    started_here = most->slots + static_cast<int>(options.hosts.size());
  }
  return std::max(48, 32 + 5 * started_here);
}

void CheckOpenFiles(int needed) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= static_cast<rlim_t>(needed)) {
    return;
  }
  throw UsageError(fmt::format("mpirun needs {} open files for these ranks, and this process may "
                               "have {}",
                               needed, limit.rlim_max),
                   fmt::format("raise the limit (`ulimit -n {}`), or start fewer workers", needed));
}

// True for a variable by which a launcher describes its job.  Left in a shell, it would make mpirun ask that launcher for
// machines, and end if there is none.  OMPI_MCA_* and PMIX_MCA_* are the user's settings, except those that mpirun makes
// for its ranks.  mpirun does not read SLURM_JOB_ID, and run locks name the job by it.
bool DescribesAnotherJob(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  if (name == "SLURM_JOB_ID") return false;
  for (const std::string_view prefix :
       {"OMPI_MCA_orte_ess_", "OMPI_MCA_ess_base_", "OMPI_MCA_orte_hnp_",
        "OMPI_MCA_orte_local_daemon_", "OMPI_MCA_orte_app_num", "OMPI_MCA_orte_top_session_dir",
        "OMPI_MCA_orte_precondition_"}) {
    if (name.starts_with(prefix)) return true;
  }
  for (const std::string_view prefix : {"OMPI_MCA_", "PMIX_MCA_", "PMIX_PKG"}) {
    if (name.starts_with(prefix)) return false;
  }
  return name.starts_with("SLURM_") || name.starts_with("OMPI_") || name.starts_with("PMI_") ||
         name.starts_with("PMI2_") || name.starts_with("PMIX_");
}

std::vector<std::string> RankEnvironment(const MpirunOptions& options) {
  std::vector<std::string> environment = OwnEnvironment();
  if (options.hosts.empty()) std::erase_if(environment, DescribesAnotherJob);
  // Without mpi_yield_when_idle, more ranks than cores spin against each other: a small all-reduce then takes
  // 16-32 ms instead of 20 us.
  const auto unless_set = [&](const std::string& name, const std::string& value) {
    if (!HasVariable(environment, name)) environment.push_back(name + "=" + value);
  };
  unless_set("OMPI_MCA_mpi_yield_when_idle", "1");
  // The defaults let mpirun and its daemons wait eight minutes before they take a link as cut.
  unless_set("OMPI_MCA_oob_tcp_keepalive_time", "20");
  unless_set("OMPI_MCA_oob_tcp_keepalive_intvl", "5");
  unless_set("OMPI_MCA_oob_tcp_keepalive_probes", "4");
  // The files of a killed mpirun are then removed with the supervisor's folders.
  if (options.hosts.empty()) {  // other machines do not have this folder
    unless_set("OMPI_MCA_orte_tmpdir_base", options.status_folder.string());
  }
  // With TCP every rank would listen on every address; on one machine, shared memory carries all messages.
  if (options.hosts.empty() && HasRoomFor(options.ranks, options.shared_memory)) {
    unless_set("OMPI_MCA_btl", "self,vader");
  }
  for (const char* const user : {"btl_vader", "osc_sm", "osc_rdma"}) {
    if (options.shared_memory.empty()) break;
    unless_set(fmt::format("OMPI_MCA_{}_backing_directory", user), options.shared_memory.string());
  }
  environment.push_back(
      fmt::format("{}={}", kStatusFolderVariable, options.status_folder.string()));
  environment.push_back(fmt::format("{}={:d}", status_line::kProgressVariable, options.err >= 0));
  return environment;
}

void AddHosts(const MpirunOptions& options, std::vector<std::string>& arguments) {
  const std::vector<HostSlots>& hosts = options.hosts;
  if (hosts.empty()) {
    // Without this, an allocation or a default host file would make mpirun start ranks on other machines.
    arguments.insert(arguments.end(), {"--host", fmt::format("localhost:{}", options.ranks)});
    return;
  }
  // A bundle has its own orted; ssh finds it by this prefix.
  if (const fs::path bundle = BundleFolder(); !bundle.empty()) {
    arguments.insert(arguments.end(), {"--prefix", bundle.string()});
  }
  arguments.insert(arguments.end(), {"--host", TextOf(hosts), "--map-by", "slot"});
}

// Returns the names of the variables that mpirun passes on.  Ranks on this machine inherit all others from it; on other
// machines ssh starts with a new environment.
std::set<std::string> Passed(const std::vector<std::string>& environment, bool all_here) {
  if (all_here) return {kStatusFolderVariable, status_line::kProgressVariable};
  std::set<std::string> names;
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name.starts_with("DTRAIN_") || name.starts_with("OMP_") || name.starts_with("ONEDNN_") ||
        name == "NO_COLOR") {
      names.insert(name);
    }
  }
  return names;
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
  command.open_files = OpenFilesFor(options);
  CheckOpenFiles(command.open_files);
  command.out = options.out;
  command.err = options.err;
  command.arguments = {"mpirun", "--oversubscribe", "--bind-to", "none"};
  // With several machines, only mpirun knows which rank was lost, and where, so it may print that.
  if (options.hosts.empty()) command.arguments.emplace_back("--quiet");
  if (::geteuid() == 0) command.arguments.emplace_back("--allow-run-as-root");
  command.environment = RankEnvironment(options);
  AddHosts(options, command.arguments);
  for (const std::string& name : Passed(command.environment, options.hosts.empty())) {
    command.arguments.insert(command.arguments.end(), {"-x", name});
  }
  const std::string executable =
      options.executable.empty() ? ProgramFile().string() : options.executable;
  command.arguments.insert(command.arguments.end(),
                           {"-n", std::to_string(options.ranks), executable});
  for (const std::string& argument : options.arguments) {
    // mpirun would take a single ":" for the begin of another program: `--output :` becomes `--output=:`.
    if (argument == ":") {
      command.arguments.back() += "=:";
    } else {
      command.arguments.push_back(argument);
    }
  }
  return command;
}

ProgramCommand MakeMpirunProbe(ProgramCommand command, const fs::path& log) {
  std::vector<std::string>& arguments = command.arguments;
  const auto ranks = std::ranges::find(arguments, "-n");
  arguments.erase(ranks + 2, arguments.end());
  arguments.emplace_back("/bin/true");
  std::erase(arguments, "--quiet");
  command.log = log.string();
  command.out = command.err = -1;
  return command;
}

pid_t StartMpirun(const ProgramCommand& command) {
  log::Debug("starting {} ({})", Join(command.arguments, " "), command.path);
  return StartProgram(command, kNoMpirun);
}

}  // namespace dtrain
