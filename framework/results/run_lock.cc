#include "framework/results/run_lock.h"

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
#include <string_view>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/setup/run_config.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

struct Holder {
  std::string host;
  pid_t pid;
  std::string since;
  uint64_t born;    // BornAt(pid): tells the process from a later one with the same number
  std::string job;  // the Slurm job id, or ""
};

// Returns when a process started, in clock ticks since the machine booted; 0 if there is no such process.
uint64_t BornAt(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  // The name, field 2, may contain blanks and brackets.  The start time is the 20th field after it.
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
  return JsonText(text) + "\n";
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

// True as far as this host can tell.  A job that Slurm has restarted has no processes of its earlier start.
bool IsAlive(const Holder& holder) {
  if (holder.host == HostName()) return BornAt(holder.pid) == holder.born;
  return holder.job.empty() || holder.job != SlurmJob();
}

// `locked` is true if the file system reports the lock as held, so that the holder is alive on any host.
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

// A holder writes its name just after it has locked the file.  Until then the file may name an earlier holder.
std::optional<Holder> WaitForHolder(const fs::path& path) {
  for (int tries = 0; tries < 40; ++tries) {
    if (auto holder = ReadHolder(path); holder && IsAlive(*holder)) return holder;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return std::nullopt;
}

// Checks the first bytes only.  True also for a truncated file, and for one whose content was lost in a power failure.
bool IsLock(const fs::path& path) {
  constexpr std::string_view kBegin = "{\"host\"";
  char text[kBegin.size()];
  std::ifstream in(path, std::ios::binary);
  in.read(text, sizeof(text));
  const std::string_view begin(text, static_cast<size_t>(in.gcount()));
  return kBegin.starts_with(begin) || begin.find_first_not_of('\0') == std::string_view::npos;
}

// Returns the path of the folder's lock file, which will be overwritten.  Throws if a file of another kind has that
// name.  A file that cannot be read or is no regular file is refused by LockFile.
fs::path LockOf(const fs::path& folder) {
  std::error_code error;
  const fs::path path = folder / "run.lock";
  if (fs::is_regular_file(path, error) && ::access(path.c_str(), R_OK) == 0 && !IsLock(path)) {
    throw UsageError(
        fmt::format("{} was not written by a run, and one in this folder would write over it",
                    path.string()),
        "choose another --output");
  }
  return path;
}

// A path that ends with a slash has no last part; the folder is what precedes the slash.
fs::path WithoutSlash(const fs::path& wanted) {
  return wanted.has_filename() ? wanted : wanted.parent_path();
}

std::string NumberedFolder(const fs::path& base, int number) {
  return number == 1 ? base.string() : fmt::format("{}-{}", base.string(), number);
}

// Throws if another run has the lock.  A lock that another user took on a file that others can open is no obstacle.
void Take(LockFile& file) {
  for (;;) {
    const LockFile::Answer answer = file.Take();
    if (answer == LockFile::Answer::kLocked) return;
    const bool held = answer == LockFile::Answer::kHeld;
    const std::optional<Holder> holder =
        held ? WaitForHolder(file.path()) : ReadHolder(file.path());
    if (holder && IsAlive(*holder)) ThrowHeld(file.path(), holder, held);
    if (held) {
      if (!file.Replace()) ThrowHeld(file.path(), holder, held);
      log::Warning(
          "{} could be opened by others, and one of them holds it: a new one takes its place",
          file.path().string());
    } else if (file.IsThere()) {
      return;
    } else {
      file.OpenAgain();
    }
  }
}

}  // namespace

RunLock::RunLock(const fs::path& folder, LockFile::Flock flock) : file_(LockOf(folder), flock) {
  const std::string text = TextOfThisProcess();
  Take(file_);
  if (::ftruncate(file_.fd(), 0) != 0 || ::pwrite(file_.fd(), text.data(), text.size(), 0) < 0) {
    ThrowErrno("write", file_.path());
  }
}

// The file is removed while it is still locked.  A process that has opened it meanwhile notices that and opens a new
// one.
RunLock::~RunLock() {
  if (file_.fd() < 0) return;
  file_.Remove();
  if (made_folder_)
    ::rmdir(file_.path().parent_path().c_str());  // fails if the folder is not empty
}

bool RunGoesOn(const fs::path& folder) {
  const fs::path path = folder / "run.lock";
  if (!fs::is_regular_file(path)) return false;
  if (::access(path.c_str(), R_OK) != 0)
    return true;  // another user's; it is removed when the run ends
  const std::optional<Holder> holder = ReadHolder(path);
  return holder && IsAlive(*holder);
}

void RefuseRunThatGoesOn(const fs::path& folder) {
  const fs::path path = LockOf(folder);
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
