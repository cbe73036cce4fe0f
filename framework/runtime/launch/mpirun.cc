#include "framework/runtime/launch/mpirun.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "framework/core/error.h"
#include "framework/runtime/launch/status_record.h"

extern char** environ;

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
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  // Without it, more ranks than cores spin against each other: a small all-reduce then takes 16-32
  // ms instead of 20 us.
  const std::string yield = "OMPI_MCA_mpi_yield_when_idle";
  if (!HasVariable(environment, yield)) environment.push_back(yield + "=1");
  environment.push_back(
      fmt::format("{}={}", kStatusFolderVariable, options.status_folder.string()));
  environment.push_back(fmt::format("{}={:d}", kProgressVariable, options.progress_terminal));
  return environment;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec: system calls only.
[[noreturn]] void BecomeMpirun(const char* path, char* const* arguments, char* const* environment,
                               pid_t parent, int error_pipe) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // mpirun is in the background of a terminal: reading from that would stop it.
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::execve(path, arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(error_pipe, &error, sizeof(error));
  ::_exit(127);
}

}  // namespace

std::string FindMpirun() {
  const char* search = std::getenv("PATH");
  std::istringstream folders(search == nullptr ? "" : search);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder) / "mpirun";
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

MpirunCommand MakeMpirunCommand(const MpirunOptions& options) {
  MpirunCommand command;
  command.path = MpirunOrThrow();
  command.arguments = {"mpirun", "--oversubscribe", "--bind-to", "none", "--quiet"};
  if (::geteuid() == 0) command.arguments.emplace_back("--allow-run-as-root");
  const std::string executable =
      options.executable.empty() ? fs::read_symlink("/proc/self/exe").string() : options.executable;
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

pid_t StartMpirun(const MpirunCommand& command) {
  const std::vector<char*> arguments = Pointers(command.arguments);
  const std::vector<char*> environment = Pointers(command.environment);
  std::array<int, 2> error_pipe = {};
  if (::pipe2(error_pipe.data(), O_CLOEXEC) != 0) {
    throw UsageError(fmt::format("cannot start mpirun: {}", std::strerror(errno)));
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    BecomeMpirun(command.path.c_str(), arguments.data(), environment.data(), parent, error_pipe[1]);
  }
  int error = child < 0 ? errno : 0;
  ::close(error_pipe[1]);
  if (child > 0 && ::read(error_pipe[0], &error, sizeof(error)) > 0) ::waitpid(child, nullptr, 0);
  ::close(error_pipe[0]);
  if (error != 0) {
    throw UsageError(fmt::format("cannot start {}: {}", command.path, std::strerror(error)),
                     kNoMpirun);
  }
  return child;
}

}  // namespace dtrain
