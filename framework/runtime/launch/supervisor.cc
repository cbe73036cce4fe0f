#include "framework/runtime/launch/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/status_line.h"
#include "framework/core/time.h"
#include "framework/runtime/launch/child_program.h"
#include "framework/runtime/launch/output_relay.h"
#include "framework/runtime/launch/process_folder.h"
#include "framework/runtime/launch/rank_processes.h"
#include "framework/runtime/launch/stop_signal.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr Nanos kReadyWait = FromSeconds(10);  // for the records of ranks, before a stop is sent

// Longer than a rank may be stopped: the ranks' own watch, which ends the run as well, knows who waits
// for whom.
constexpr double kAfterTheRanks = 3;
constexpr double kPollSeconds = 0.1, kStartPollSeconds = 0.005;  // of BlockedSignals::Wait
constexpr Nanos kStartWatch = FromSeconds(10);                   // at most
constexpr int kPollsALook = 5;  // between two looks at the processes
// How long mpirun may go on when none of its ranks lives, and before the first one comes: it has been seen to
// wait for ever.  In looks: a time in which this process itself was stopped is not among them.
constexpr int kLooksWithoutRanks = 20;      // 10 s
constexpr int kLooksBeforeRanks = 5 * 120;  // 5 minutes

fs::path TemporaryFolder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (!error) return folder;
  throw RunFileError("there is no folder for temporary files",
                     "set TMPDIR to a folder that can be written");
}

// Null where it cannot be made: Open MPI then has its files where it likes.
std::unique_ptr<ProcessFolder> FolderInSharedMemory() {
  try {
    return std::make_unique<ProcessFolder>(kSharedMemory);
  } catch (const RunFileError&) {
    return nullptr;
  }
}

// One mpirun, from start to end.
class Job {
 public:
  Job(const SupervisorOptions& options, const std::vector<std::string>& arguments)
      : folder_(TemporaryFolder()),
        shared_memory_(options.hosts.empty() ? FolderInSharedMemory() : nullptr),
        ranks_(options.ranks),
        all_here_(options.hosts.empty()),
        relay_(OutputRelay::ToTerminal()),
        stopped_(options.stall_seconds, kPollSeconds * kPollsALook, kAfterTheRanks),
        host_(HostName()) {
    mpirun_ = StartMpirun(
        MakeMpirunCommand({.ranks = options.ranks,
                           .executable = options.executable,
                           .arguments = arguments,
                           .hosts = options.hosts,
                           .status_folder = folder_.path(),
                           .shared_memory = shared_memory_ == nullptr ? "" : shared_memory_->path(),
                           .out = relay_ ? relay_->out() : -1,
                           .err = relay_ ? relay_->err() : -1}));
    if (relay_) relay_->Start();
  }

  JobEnd Watch(const BlockedSignals& signals) {
    int status = 0;
    while (::waitpid(mpirun_, &status, WNOHANG) == 0) {
      // Ranks that come up are seen at once: of one that dies before, nobody knows which it was.
      const bool starts = !AllFound() && WallNow() - begin_ < kStartWatch;
      OnSignal(signals.Wait(starts ? kStartPollSeconds : kPollSeconds));
      FindProcesses();
      const std::vector<RankStatus> records = Records();
      FindLost(records);
      SendStop(records);
      if (!starts && ++polls_ % kPollsALook == 0) LookAtProcesses(records);
    }
    end_.exit_status = CodeOfStatus(status);
    relay_.reset();  // all that was said comes before how it ended
    FindUnseen();
    end_.ranks = Records();
    if (WIFSIGNALED(status) && !killed_) {
      end_.mpirun_signal = WTERMSIG(status);
      KillRanks();  // nobody else would
    }
    return end_;
  }

 private:
  void OnSignal(int signal) {
    if (signal == 0 || signal == SIGCHLD) return;
    if (signal == SIGINT) status_line::NoteInterrupt();
    if (end_.stop_signal == 0) {
      end_.stop_signal = signal;
      stop_at_ = WallNow();
      log::Info("stopping: the ranks finish their step and write a checkpoint{}",
                signal == SIGINT ? " (Ctrl-C again leaves at once)" : "");
    } else if (signal != SIGUSR1 && signal != SIGUSR2 && WallNow() - stop_at_ > kOneRequest) {
      end_.stop_signal = signal;
      end_.killed = true;
      KillAll();
    }
  }

  // What the ranks say of themselves, and of those that have not come so far, that they are there.
  std::vector<RankStatus> Records() const {
    std::vector<RankStatus> records = ReadStatusRecords(folder_.path());
    for (const auto& [rank, pid] : processes_) {
      const bool says = std::ranges::any_of(
          records, [rank = rank](const RankStatus& record) { return record.rank == rank; });
      if (!says) records.push_back({.rank = rank, .host = host_, .pid = pid, .says = false});
    }
    std::ranges::sort(records, {}, &RankStatus::rank);
    return records;
  }

  bool AllFound() const { return static_cast<int>(processes_.size()) == ranks_; }

  void FindProcesses() {
    if (AllFound()) return;
    for (const RankProcess& process : RankProcesses(mpirun_)) {
      if (!processes_.emplace(process.rank, process.pid).second) continue;
      deaths_.Watch(process.rank, process.pid);
      looks_without_ranks_ = 0;  // now the shorter limit holds
    }
  }

  // A rank was killed as it came up, and all others were seen: it was the one that is missing.
  void FindUnseen() {
    if (!all_here_ || static_cast<int>(processes_.size()) != ranks_ - 1) return;
    if (end_.exit_status <= kSignalBase) return;
    for (const RankStatus& rank : Records()) {
      if (rank.says && rank.host != host_) return;
    }
    int missing = 0;
    while (processes_.contains(missing)) ++missing;
    processes_[missing] = 0;
    end_.first_lost = missing;
  }

  // A rank that was stopped neither moves nor dies, whatever it was doing.
  void LookAtProcesses(const std::vector<RankStatus>& records) {
    for (const RankStatus& rank : records) {
      if (rank.host != host_) continue;  // one that has ended may be stopped on its way out
      if (!stopped_.IsTooLong(rank.rank, IsStopped(rank.pid)) || killed_) continue;
      end_.stopped = rank.rank;
      KillAll();
    }
    // Ranks elsewhere are not seen, and a wrapper around mpirun may hide its children: their records speak for them.
    const bool is_alive = (processes_.empty() && !all_here_) ||
                          std::ranges::any_of(records, [](const RankStatus& rank) {
                            return IsRank(rank.pid, rank.rank);
                          });
    looks_without_ranks_ = is_alive ? 0 : looks_without_ranks_ + 1;
    if (looks_without_ranks_ > (records.empty() ? kLooksBeforeRanks : kLooksWithoutRanks) &&
        !killed_) {
      end_.mpirun_hung = true;
      KillAll();
    }
  }

  // A rank that vanished without a last word, unless another's failure came before.  Of ranks on several machines
  // nobody here sees which was the first; mpirun tells it.
  void FindLost(const std::vector<RankStatus>& records) {
    if (end_.first_lost || !all_here_) return;
    for (const RankStatus& rank : records) {
      if (rank.exit_code.value_or(0) != 0) return;
    }
    for (const int ended : deaths_.Ranks()) {
      const bool said_all = std::ranges::any_of(records, [ended](const RankStatus& record) {
        return record.rank == ended && record.exit_code.has_value();
      });
      if (said_all) continue;
      end_.first_lost = ended;
      return;
    }
    std::vector<int> silent;  // gone before they could say anything
    for (const RankStatus& rank : records) {
      if (rank.exit_code || rank.host != host_ || IsAlive(rank.pid)) continue;
      if (rank.says) {
        end_.first_lost = rank.rank;
        return;
      }
      silent.push_back(rank.rank);
    }
    // mpirun ends the others as soon as one is lost: of several that are gone, nobody knows which was first.
    if (silent.size() == 1) end_.first_lost = silent[0];
  }

  // Before a rank has its record it has no handler either, and USR1 would kill it.
  void SendStop(const std::vector<RankStatus>& records) {
    if (end_.stop_signal == 0 || stop_sent_) return;
    const bool ready = static_cast<int>(records.size()) == ranks_;
    if (!ready && WallNow() - stop_at_ < kReadyWait) return;
    ::kill(mpirun_, SIGUSR1);
    stop_sent_ = true;
  }

  // mpirun's ranks are in groups of their own and would outlive it by seconds.
  void KillAll() {
    killed_ = true;
    KillRanks();
    ::kill(-mpirun_, SIGKILL);
  }
  void KillRanks() {
    for (const RankStatus& rank : Records()) {
      if (rank.host == host_ && IsRank(rank.pid, rank.rank)) ::kill(rank.pid, SIGKILL);
    }
  }

  const ProcessFolder folder_;
  const std::unique_ptr<ProcessFolder> shared_memory_;
  const int ranks_;
  const bool all_here_;  // on this machine
  std::unique_ptr<OutputRelay> relay_;
  StoppedRanks stopped_;
  const std::string host_;
  const Nanos begin_ = WallNow();
  pid_t mpirun_ = 0;
  JobEnd end_;
  bool killed_ = false;             // by this process
  std::map<int, pid_t> processes_;  // of ranks on this machine, as they were seen
  DeathOrder deaths_;               // of these
  int polls_ = 0;
  int looks_without_ranks_ = 0;
  Nanos stop_at_ = 0;
  bool stop_sent_ = false;
};

void Tell(const Verdict& verdict) {
  if (verdict.line.empty()) return;
  const bool stopped = verdict.exit_code == static_cast<int>(ExitCode::kStopped);
  log::Write(stopped ? log::Level::kInfo : log::Level::kError, verdict.line);
}

// Of a run that was lost or killed, whose next start need not be the first one again.
void TellWhatGoesOn(const SupervisorOptions& options, const Verdict& verdict) {
  const bool goes_on = verdict.rank_lost || verdict.exit_code > kSignalBase ||
                       verdict.exit_code == static_cast<int>(ExitCode::kStalled);
  if (!goes_on || !options.newest_checkpoint) return;
  const std::string checkpoint = options.newest_checkpoint();
  if (checkpoint.empty()) return;
  log::Error("  go on from {} with {}{}", checkpoint, options.resume,
             verdict.rank_lost && options.max_restarts == 0
                 ? "; with --max-restarts N lost ranks are started again up to N times"
                 : "");
}

}  // namespace

int Supervise(const SupervisorOptions& options) {
  const BlockedSignals signals;
  RemoveLeftFolders(TemporaryFolder());
  RemoveLeftFolders(kSharedMemory);
  std::vector<std::string> arguments = options.arguments;
  for (int restarts = 0;; ++restarts) {
    const Verdict verdict = Judge(Job(options, arguments).Watch(signals), options.resume);
    Tell(verdict);
    if (!verdict.rank_lost || restarts == options.max_restarts) {
      TellWhatGoesOn(options, verdict);
      return verdict.exit_code;
    }
    log::Warning("restart {} of {}, with --resume auto", restarts + 1, options.max_restarts);
    arguments = WithResumeAuto(options.arguments);
  }
}

}  // namespace dtrain
