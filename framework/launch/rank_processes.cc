#include "framework/launch/rank_processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "framework/launch/child_program.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// Returns a file of /proc; "" if there is no such process, or if it is another user's.
std::string ReadProc(pid_t pid, const char* file) {
  std::ifstream in(fmt::format("/proc/{}/{}", pid, file), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the state as in proc(5): R, S, D, Z, T, t, ...; 0 if there is no such process.
char StateOf(pid_t pid) {
  const std::string stat = ReadProc(pid, "stat");  // "pid (name) state ..."
  const size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos ? '\0' : stat[name_end + 2];
}

// Finds the variable that begins with `entry`, which is "NAME=", or "NAME=value" and the terminating zero.  Returns the
// text after `entry`; null if there is no such variable.
const char* FindInEnvironment(const std::string& environment, std::string_view entry) {
  for (size_t at = environment.find(entry); at != std::string::npos;
       at = environment.find(entry, at + 1)) {
    if (at == 0 || environment[at - 1] == '\0') return environment.c_str() + at + entry.size();
  }
  return nullptr;
}

// mpirun names the rank in the first variable, srun --mpi=pmix in the second.
std::optional<int> RankIn(const std::string& environment) {
  for (const std::string_view variable : {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK="}) {
    const char* const value = FindInEnvironment(environment, variable);
    if (value != nullptr) return std::atoi(value);
  }
  return std::nullopt;
}

}  // namespace

bool IsAlive(pid_t pid) {
  const char state = StateOf(pid);
  return state != '\0' && state != 'Z' && state != 'X';
}

bool IsStopped(pid_t pid) { return StateOf(pid) == 'T'; }

bool Catches(pid_t pid, int signal) {
  constexpr std::string_view kField =
      "\nSigCgt:";  // followed by a mask in hexadecimal digits; signal 1 is bit 0
  const std::string status = ReadProc(pid, "status");
  const size_t at = status.find(kField);
  if (at == std::string::npos) return false;
  const uint64_t caught = std::strtoull(status.c_str() + at + kField.size(), nullptr, 16);
  return (caught >> (signal - 1) & 1) != 0;
}

std::optional<int> RankOf(pid_t pid) { return RankIn(ReadProc(pid, "environ")); }

bool IsRank(pid_t pid, int rank, const std::string& mark) {
  const std::string environment = ReadProc(pid, "environ");
  return RankIn(environment) == rank &&
         FindInEnvironment(environment, std::string_view(mark.c_str(), mark.size() + 1)) != nullptr;
}

// The descriptor belongs to the process that has the number now, so a later process with that number never gets the
// signal.
bool SignalRank(pid_t pid, int rank, const std::string& mark, int signal) {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process < 0 && errno == ESRCH) return false;
  bool is_sent = IsRank(pid, rank, mark);
  if (process < 0)
    return is_sent && ::kill(pid, signal) == 0;  // Linux before 5.3, or no free descriptor
  is_sent = is_sent && ::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0) == 0;
  ::close(process);
  return is_sent;
}

std::optional<int> ExitStatusOfZombie(pid_t pid) {
  if (StateOf(pid) != 'Z') return std::nullopt;
  const std::string stat = ReadProc(pid, "stat");  // the last field is waitpid's status
  const size_t last = stat.rfind(' ');
  if (last == std::string::npos) return std::nullopt;
  return CodeOfStatus(std::atoi(stat.c_str() + last + 1));
}

std::vector<RankProcess> RankProcesses(pid_t mpirun) {
  std::vector<RankProcess> ranks;
  std::error_code ignored;
  // Linux lists the children of each thread separately.
  for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", mpirun), ignored)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t pid = 0; children >> pid;) {
      if (const std::optional<int> rank = RankOf(pid)) {
        ranks.push_back({*rank, pid});
      } else {
        const std::vector<RankProcess> below = RankProcesses(pid);
        ranks.insert(ranks.end(), below.begin(), below.end());
      }
    }
  }
  return ranks;
}

DeathOrder::DeathOrder() : wake_(::eventfd(0, EFD_CLOEXEC)) {}

DeathOrder::~DeathOrder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ::eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  for (const Watched& one : watched_) ::close(one.fd);
  ::close(wake_);
}

void DeathOrder::Watch(int rank, pid_t pid) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return;  // it has ended already, or the system is too old
  {
    const std::lock_guard lock(mutex_);
    watched_.push_back({rank, fd});
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Wait(); });
  ::eventfd_write(wake_, 1);
}

std::vector<int> DeathOrder::Ranks() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void DeathOrder::Wait() {
  std::vector<pollfd> fds;
  while (true) {
    fds.assign(1, {wake_, POLLIN, 0});
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
      for (const Watched& one : watched_) fds.push_back({one.fd, POLLIN, 0});
    }
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    eventfd_t ignored = 0;
    if (fds[0].revents != 0) ::eventfd_read(wake_, &ignored);
    const std::lock_guard lock(mutex_);
    for (size_t i = fds.size() - 1; i > 0; --i) {
      if (fds[i].revents == 0) continue;
      ended_.push_back(watched_[i - 1].rank);
      ::close(watched_[i - 1].fd);
      watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
  }
}

}  // namespace dtrain
