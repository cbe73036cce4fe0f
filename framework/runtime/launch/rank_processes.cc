#include "framework/runtime/launch/rank_processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "framework/comm/node_window.h"
#include "framework/core/error.h"
#include "framework/core/process.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFolderName = "dtrain-";

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

bool IsOwn(const fs::path& path, struct stat& status) {
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

// Files that this user's processes have mapped.  Those of others cannot be read, and theirs are not ours.
std::set<std::string> MappedFiles(const std::string& beneath) {
  std::set<std::string> mapped;
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    if (process.path().filename().string().find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      const size_t path = line.find(beneath);
      if (path != std::string::npos) mapped.insert(line.substr(path));
    }
  }
  return mapped;
}

// By the name of a ProcessFolder.
std::optional<pid_t> FolderOwner(const std::string& name) {
  if (!name.starts_with(kFolderName)) return std::nullopt;
  char* end = nullptr;
  const long pid = std::strtol(name.c_str() + kFolderName.size(), &end, 10);
  if (pid <= 0 || *end != '-') return std::nullopt;
  return static_cast<pid_t>(pid);
}

// What processes that live no more made beneath `above`: of this user, and of this type.
void RemoveOfTheDead(const fs::path& above, mode_t type,
                     std::optional<pid_t> (*owner_of)(const std::string& name)) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(above, ignored)) {
    const std::optional<pid_t> owner = owner_of(entry.path().filename().string());
    struct stat status = {};
    if (!owner || IsAlive(*owner) || !IsOwn(entry.path(), status)) continue;
    if ((status.st_mode & S_IFMT) == type) fs::remove_all(entry.path(), ignored);
  }
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

ProcessFolder::ProcessFolder(const fs::path& above) {
  std::string name = (above / fmt::format("{}{}-XXXXXX", kFolderName, ::getpid())).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw RunFileError(fmt::format("cannot create folder {}: {}", name, std::strerror(errno)),
                       "set TMPDIR to a folder that can be written");
  }
  path_ = name;
}

ProcessFolder::~ProcessFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void RemoveLeftFolders(const fs::path& above) { RemoveOfTheDead(above, S_IFDIR, FolderOwner); }

void RemoveLeftMemory(const fs::path& shared_memory) {
  RemoveOfTheDead(shared_memory, S_IFREG, NodeWindow::OwnerOf);
}

void RemoveLeftOfOpenMpi(const fs::path& temporary, const fs::path& shared_memory) {
  constexpr time_t kYoungSeconds = 60;
  std::error_code ignored;
  struct stat status = {};
  std::vector<fs::path> segments;
  for (const auto& entry : fs::directory_iterator(shared_memory, ignored)) {
    const bool is_segment = entry.path().filename().string().starts_with("vader_segment.");
    if (!is_segment || !IsOwn(entry.path(), status) || !S_ISREG(status.st_mode)) continue;
    if (status.st_mtime + kYoungSeconds < ::time(nullptr)) segments.push_back(entry.path());
  }
  if (!segments.empty()) {
    const std::set<std::string> mapped = MappedFiles(shared_memory.string() + "/vader_segment.");
    for (const fs::path& segment : segments) {
      if (!mapped.contains(segment.string())) fs::remove(segment, ignored);
    }
  }
  const std::string host = HostName();
  const std::string session = "ompi." + host.substr(0, host.find('.'));
  for (const auto& entry : fs::directory_iterator(temporary, ignored)) {
    const bool is_session = entry.path().filename().string().starts_with(session);
    if (!is_session || !IsOwn(entry.path(), status) || !S_ISDIR(status.st_mode)) continue;
    for (const auto& job : fs::directory_iterator(entry.path(), ignored)) {
      const std::string name = job.path().filename().string();
      const pid_t pid = name.starts_with("pid.") ? std::atoi(name.c_str() + 4) : 0;
      if (pid > 0 && !IsAlive(pid)) fs::remove_all(job.path(), ignored);
    }
  }
}

}  // namespace dtrain
