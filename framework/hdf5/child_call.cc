#include "framework/hdf5/child_call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"

namespace dtrain {
namespace {

// The child's last message is kDone, or kFailed, the message, a zero, the hint.
constexpr char kDone = 'd', kFailed = 'f';
constexpr size_t kMessageMax = 1 << 16;
constexpr int64_t kLookForStopMs = 100;

int64_t AddressSpaceBytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

void Limit(__rlimit_resource resource, int64_t soft, int64_t hard) {
  rlimit now = {};
  ::getrlimit(resource, &now);
  const auto at_most = [](int64_t value, rlim_t most) {
    return std::min(static_cast<rlim_t>(value), most);
  };
  const rlimit limit = {at_most(soft, now.rlim_max), at_most(hard, now.rlim_max)};
  ::setrlimit(resource, &limit);
}

// Makes the child independent: no handler of MPI or a sanitizer reports the crash that the parent reports, no core is
// dumped, and the child does not outlive its parent.
void PrepareChild(const ChildLimits& limits, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGXFSZ}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t cpu;
  sigemptyset(&cpu);
  sigaddset(&cpu, SIGXCPU);
  ::sigprocmask(SIG_UNBLOCK, &cpu, nullptr);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  Limit(RLIMIT_CORE, 0, 0);
  Limit(RLIMIT_CPU, limits.compute_seconds, limits.compute_seconds + 1);
  const int64_t memory = AddressSpaceBytes() + limits.memory_bytes;
  Limit(RLIMIT_AS, memory, memory);
}

std::string Failure(std::string what, const std::string& hint) {
  return (kFailed + std::move(what) + '\0' + hint).substr(0, kMessageMax);
}

std::string MessageOf(const std::string& action, const std::function<void()>& work) {
  try {
    work();
    return {kDone};
  } catch (const Error& error) {
    return Failure(error.what(), error.hint());
  } catch (const std::exception& error) {
    return Failure(fmt::format("cannot {}: {}", action, error.what()), "");
  }
}

[[noreturn]] void RunAsChild(const std::string& action, const std::function<void()>& work,
                             const ChildLimits& limits, pid_t parent, int out) noexcept {
  PrepareChild(limits, parent);
  const std::string message = MessageOf(action, work);
  // A blocking write to a pipe accepts a message of this size completely.
  const ssize_t written = ::write(out, message.data(), message.size());
  ::_exit(written == static_cast<ssize_t>(message.size()) ? 0 : 1);
}

// The parent's end of the pipe: the child has ended when its own end is closed.
class Child {
 public:
  Child(pid_t pid, int in) : pid_(pid), in_(in) {}
  ~Child() {
    ::close(in_);
    End();
  }
  Child(const Child&) = delete;

  // Reads the child's whole message; returns false if the child has not ended in time.
  bool ReadAll(int64_t seconds, std::string& message) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::array<char, 4096> chunk;
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      EndIfStopped("reading a file");
      pollfd event = {in_, POLLIN, 0};
      const auto wait = std::min<int64_t>(left.count(), kLookForStopMs);
      if (::poll(&event, 1, static_cast<int>(wait)) <= 0) continue;
      const ssize_t bytes = ::read(in_, chunk.data(), chunk.size());
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) return true;
      message.append(chunk.data(), static_cast<size_t>(bytes));
    }
  }

  // Returns the child's wait status; 0 if other code has already waited for it.
  int End() {
    int status = 0;
    if (pid_ <= 0) return 0;
    ::kill(pid_, SIGKILL);  // no effect on an ended child
    while (::waitpid(pid_, &status, 0) < 0) {
      if (errno != EINTR) break;
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
  int in_;
};

std::string HowItEnded(int status, const ChildLimits& limits) {
  if (!WIFSIGNALED(status)) return "the reading process ended early";
  if (WTERMSIG(status) == SIGXCPU) {
    return fmt::format("the reading process took more than {} s", limits.compute_seconds);
  }
  return fmt::format("the reading process crashed ({})", ::strsignal(WTERMSIG(status)));
}

}  // namespace

void RunInChild(const std::string& action, const std::function<void()>& work,
                const ChildLimits& limits) {
  const auto fail = [&](const std::string& reason) {
    throw CheckpointError(fmt::format("cannot {}: {}", action, reason));
  };
  std::array<int, 2> pipe = {};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) fail(std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  const int error = errno;
  if (pid == 0) {
    ::close(pipe[0]);
    RunAsChild(action, work, limits, parent, pipe[1]);
  }
  ::close(pipe[1]);
  Child child(pid, pipe[0]);
  if (pid < 0) fail(std::strerror(error));
  std::string message;
  if (!child.ReadAll(limits.wait_seconds, message)) {
    fail(fmt::format("the reading process did not end within {} s", limits.wait_seconds));
  }
  const int status = child.End();
  if (message == std::string{kDone}) return;
  if (!message.starts_with(kFailed)) fail(HowItEnded(status, limits));
  const size_t zero = std::min(message.find('\0'), message.size());
  throw CheckpointError(message.substr(1, zero - 1),
                        zero < message.size() ? message.substr(zero + 1) : "");
}

}  // namespace dtrain
