#include "framework/runtime/results/run_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/process.h"
#include "framework/runtime/setup/run_config.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

struct Holder {
  std::string host;
  pid_t pid;
  std::string since;
  uint64_t born;    // BornAt(pid): another process with a number used again was born later
  std::string job;  // Slurm's, or empty
};

// When a process began, in the kernel's ticks since the machine started; 0 when there is none.
uint64_t BornAt(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  // The name, field 2, may hold blanks and brackets; the time is the 20th field behind it.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 0; field < 19; ++field) fields >> skipped;
  uint64_t born = 0;
  fields >> born;
  return born;
}

std::string SlurmJob() {
  const char* const job = std::getenv("SLURM_JOB_ID");
  return job == nullptr ? "" : job;
}

std::string TextOfThisProcess() {
  const pid_t pid = ::getpid();
  const nlohmann::ordered_json text = {{"host", HostName()},
                                       {"pid", pid},
                                       {"since", TimeStamp()},
                                       {"born", BornAt(pid)},
                                       {"job", SlurmJob()}};
  return text.dump() + "\n";
}

std::optional<Holder> ReadHolder(const fs::path& path) {
  try {
    const auto json = nlohmann::json::parse(ReadFile(path));
    return Holder{json.at("host"), json.at("pid"), json.at("since"), json.at("born"),
                  json.at("job")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// As far as this host can tell.  A job that Slurm has started again has no processes elsewhere.
bool IsAlive(const Holder& holder) {
  if (holder.host == HostName()) return BornAt(holder.pid) == holder.born;
  return holder.job.empty() || holder.job != SlurmJob();
}

// `locked`: the file system says so, so the holder lives, wherever it is.
[[noreturn]] void ThrowHeld(const fs::path& path, const std::optional<Holder>& holder,
                            bool locked) {
  const std::string folder = path.parent_path().string();
  const std::string who =
      holder ? fmt::format("process {} on {}, since {}", holder->pid, holder->host, holder->since)
             : "another process";
  std::string hint = "wait for it to end, or choose another --output";
  if (!locked && holder && holder->host != HostName()) {
    hint += fmt::format("; if that process is gone, remove {}", path.string());
  }
  throw UsageError(fmt::format("another run writes into {}: {}", folder, who), hint);
}

[[noreturn]] void ThrowErrno(const char* action, const fs::path& path) {
  throw RunFileError(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(errno)));
}

// A holder writes its name just after it has locked the file, which may name an earlier one until
// then.
std::optional<Holder> WaitForHolder(const fs::path& path) {
  for (int tries = 0; tries < 40; ++tries) {
    if (auto holder = ReadHolder(path); holder && IsAlive(*holder)) return holder;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return std::nullopt;
}

// A name with a slash at its end has no last part, and what is before that is the folder.
fs::path WithoutSlash(const fs::path& wanted) {
  return wanted.has_filename() ? wanted : wanted.parent_path();
}

std::string NumberedFolder(const fs::path& base, int number) {
  return number == 1 ? base.string() : fmt::format("{}-{}", base.string(), number);
}

bool StillThere(int fd, const fs::path& path) {
  struct stat opened = {}, named = {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

RunLock::RunLock(const fs::path& folder, Flock flock) : path_(folder / "run.lock") {
  const std::string text = TextOfThisProcess();
  for (;;) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) ThrowErrno("open", path_);
    const bool locked = flock(fd_, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EINTR) {
      ::close(fd_);
      continue;
    }
    if (!locked) {
      const bool held = errno == EWOULDBLOCK;
      const std::optional<Holder> holder = held ? WaitForHolder(path_) : ReadHolder(path_);
      if (held || (holder && IsAlive(*holder))) {
        ::close(fd_);
        ThrowHeld(path_, holder, held);
      }
    }
    if (StillThere(fd_, path_)) break;
    ::close(fd_);  // its holder has just removed it
  }
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, text.data(), text.size(), 0) < 0) {
    const int error = errno;
    ::close(fd_);
    errno = error;
    ThrowErrno("write", path_);
  }
}

// The file is removed while it is still locked, so that a process that has opened it meanwhile
// notices and opens a new one.
RunLock::~RunLock() {
  if (fd_ < 0) return;
  if (StillThere(fd_, path_)) ::unlink(path_.c_str());
  ::close(fd_);
  if (made_folder_) ::rmdir(path_.parent_path().c_str());  // refuses where something lies in it
}

bool RunGoesOn(const fs::path& folder) {
  const fs::path path = folder / "run.lock";
  if (!fs::is_regular_file(path)) return false;
  const std::optional<Holder> holder = ReadHolder(path);
  return holder && IsAlive(*holder);
}

void RefuseRunThatGoesOn(const fs::path& folder) {
  const fs::path path = folder / "run.lock";
  if (RunGoesOn(folder)) ThrowHeld(path, ReadHolder(path), /*locked=*/false);
}

std::string MakeOwnFolder(const std::string& wanted) {
  const fs::path base = WithoutSlash(wanted);
  if (const fs::path parent = base.parent_path(); !parent.empty()) MakeFolder(parent);
  std::string path = NumberedFolder(base, 1);
  for (int number = 2; ::mkdir(path.c_str(), 0777) != 0; ++number) {
    if (errno != EEXIST) ThrowErrno("create folder", path);
    path = NumberedFolder(base, number);
  }
  return path;
}

std::string OwnFolderName(const std::string& wanted) {
  const fs::path base = WithoutSlash(wanted);
  std::error_code ignored;
  int number = 1;
  while (fs::exists(NumberedFolder(base, number), ignored)) ++number;
  return NumberedFolder(base, number);
}

}  // namespace dtrain
