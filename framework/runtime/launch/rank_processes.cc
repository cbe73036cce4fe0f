#include "framework/runtime/launch/rank_processes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "framework/core/error.h"

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

std::optional<int> RankOf(pid_t pid) {
  constexpr std::string_view kVariable = "OMPI_COMM_WORLD_RANK=";
  const std::string environment = ReadProc(pid, "environ");
  for (size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    if (environment.compare(at, kVariable.size(), kVariable) == 0) {
      return std::atoi(environment.c_str() + at + kVariable.size());
    }
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return std::nullopt;
}

}  // namespace

bool IsAlive(pid_t pid) {
  const char state = StateOf(pid);
  return state != '\0' && state != 'Z' && state != 'X';
}

bool IsStopped(pid_t pid) { return StateOf(pid) == 'T'; }

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

OwnFolder::OwnFolder(const fs::path& above) {
  std::string name = (above / fmt::format("{}{}-XXXXXX", kFolderName, ::getpid())).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw RunFileError(fmt::format("cannot create folder {}: {}", name, std::strerror(errno)),
                       "set TMPDIR to a folder that can be written");
  }
  path_ = name;
}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void RemoveLeftFolders(const fs::path& above) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(above, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kFolderName)) continue;
    char* end = nullptr;
    const long pid = std::strtol(name.c_str() + kFolderName.size(), &end, 10);
    struct stat status = {};
    const bool is_own = ::lstat(entry.path().c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                        status.st_uid == ::geteuid();
    if (pid <= 0 || *end != '-' || !is_own || IsAlive(static_cast<pid_t>(pid))) continue;
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace dtrain
