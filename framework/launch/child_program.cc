#include "framework/launch/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "framework/core/descriptor.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/status_line.h"
#include "framework/launch/stop_signal.h"

extern char** environ;

namespace dtrain {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Exec holds the data that the child needs between fork and exec, where only system calls are allowed.
struct Exec {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int out, err;  // descriptors for stdout and stderr; -1: this process's own
  rlim_t open_files;
  pid_t parent;
  int error_pipe;
};

void AllowOpenFiles(rlim_t wanted) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

[[noreturn]] void Become(const Exec& exec) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != exec.parent) ::_exit(1);  // the parent died before the line above
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // A shell script lets its background jobs ignore INT; the parent passes stop signals on as INT.
  ::signal(SIGINT, SIG_DFL);
  // The child is a background process of the terminal: reading from that would stop it.
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  if (exec.out >= 0) ::dup2(exec.out, STDOUT_FILENO);
  if (exec.err >= 0) ::dup2(exec.err, STDERR_FILENO);
  AllowOpenFiles(exec.open_files);
  ::execve(exec.path, exec.arguments, exec.environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(exec.error_pipe, &error, sizeof(error));
  ::_exit(127);
}

// Children are the running commands; it remembers whether they have been asked to stop.
class Children {
 public:
  Children(const std::vector<ProgramCommand>& commands, const ProgramEvents& events)
      : commands_(commands), events_(events) {}

  bool Idle() const { return running_.empty(); }
  size_t running() const { return running_.size(); }
  bool Left() const { return next_ < commands_.size() && stop_signal_ == 0; }

  void StartNext() {
    const size_t command = next_++;
    running_[StartProgram(commands_[command])] = command;
    events_.started(command);
  }
  void Reap() {
    for (auto child = running_.begin(); child != running_.end();) {
      int status = 0;
      const auto [pid, command] = *child;
      if (::waitpid(pid, &status, WNOHANG) == 0) {
        ++child;
        continue;
      }
      child = running_.erase(child);
      events_.ended(command, CodeOfStatus(status));
    }
  }
  // Signals the children themselves; those that supervise ranks pass the signal on.
  void OnSignal(int signal) {
    if (signal == 0 || signal == SIGCHLD) return;
    if (signal == SIGINT) status_line::NoteInterrupt();
    if (stop_signal_ == 0) log::Info("stopping what runs (Ctrl-C again leaves at once)");
    stop_signal_ = signal;
    for (const auto& [pid, command] : running_) ::kill(pid, SIGINT);
  }
  // Call it if this process cannot go on.
  void Stop() {
    OnSignal(SIGTERM);
    for (const auto& [pid, command] : running_) ::waitpid(pid, nullptr, 0);
  }
  int stop_signal() const { return stop_signal_; }

 private:
  const std::vector<ProgramCommand>& commands_;
  const ProgramEvents& events_;
  size_t next_ = 0;
  std::map<pid_t, size_t> running_;
  int stop_signal_ = 0;
};

}  // namespace

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

pid_t StartProgram(const ProgramCommand& command, const std::string& hint) {
  const std::vector<char*> arguments = Pointers(command.arguments);
  const std::vector<char*> environment = Pointers(command.environment);
  // The log is opened before the fork, where an error message can name the file.
  const Descriptor log(command.log.empty() ? -1 : OpenToAppend(command.log));
  std::array<int, 2> error_pipe = {};
  if (::pipe2(error_pipe.data(), O_CLOEXEC) != 0) {
    throw UsageError(fmt::format("cannot start {}: {}", command.path, std::strerror(errno)));
  }
  const Exec exec{command.path.c_str(),
                  arguments.data(),
                  environment.data(),
                  command.out >= 0 ? command.out : log.get(),
                  command.err >= 0 ? command.err : log.get(),
                  static_cast<rlim_t>(command.open_files),
                  ::getpid(),
                  error_pipe[1]};
  const pid_t child = ::fork();
  if (child == 0) Become(exec);
  int error = child < 0 ? errno : 0;
  ::close(error_pipe[1]);
  if (child > 0 && ::read(error_pipe[0], &error, sizeof(error)) > 0) ::waitpid(child, nullptr, 0);
  ::close(error_pipe[0]);
  if (error != 0) {
    throw UsageError(fmt::format("cannot start {}: {}", command.path, std::strerror(error)), hint);
  }
  return child;
}

int CodeOfStatus(int status) {
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

int RunPrograms(const std::vector<ProgramCommand>& commands, int at_once,
                const ProgramEvents& events) {
  const BlockedSignals signals;
  Children children(commands, events);
  try {
    while (children.Left() || !children.Idle()) {
      while (children.Left() && children.running() < static_cast<size_t>(at_once)) {
        children.StartNext();
      }
      children.OnSignal(signals.Wait());
      children.Reap();
      if (events.waits) events.waits();
    }
  } catch (...) {
    children.Stop();
    throw;
  }
  return children.stop_signal();
}

}  // namespace dtrain
