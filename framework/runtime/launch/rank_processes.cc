#include "framework/runtime/launch/rank_processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// "" where there is no such process, or it is another user's.
std::string ReadProc(pid_t pid, const char* file) {
  std::ifstream in(fmt::format("/proc/{}/{}", pid, file), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// proc(5): R, S, D, Z, T, t, ...; 0: there is no such process.
char StateOf(pid_t pid) {
  const std::string stat = ReadProc(pid, "stat");  // "pid (name) state ..."
  const size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos ? '\0' : stat[name_end + 2];
}

}  // namespace

bool IsAlive(pid_t pid) {
  const char state = StateOf(pid);
  return state != '\0' && state != 'Z' && state != 'X';
}

bool IsStopped(pid_t pid) { return StateOf(pid) == 'T'; }

// mpirun names the rank in the first variable, srun --mpi=pmix in the second.
std::optional<int> RankOf(pid_t pid) {
  std::string environment = "\n";
  environment += ReadProc(pid, "environ");
  for (const std::string_view variable : {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK="}) {
    for (size_t at = environment.find(variable); at != std::string::npos;
         at = environment.find(variable, at + 1)) {
      const char before = environment[at - 1];
      if (before == '\0' || before == '\n') {
        return std::atoi(environment.c_str() + at + variable.size());
      }
    }
  }
  return std::nullopt;
}

bool IsRank(pid_t pid, int rank) { return RankOf(pid) == rank; }

std::vector<RankProcess> RankProcesses(pid_t mpirun) {
  std::vector<RankProcess> ranks;
  std::error_code ignored;
  // A child is its thread's.
  for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", mpirun), ignored)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t pid = 0; children >> pid;) {
      if (const std::optional<int> rank = RankOf(pid)) ranks.push_back({*rank, pid});
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
  if (fd < 0) return;  // it has ended before, or the system is too old
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
