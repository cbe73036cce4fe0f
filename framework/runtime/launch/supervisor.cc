#include "framework/runtime/launch/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/status_line.h"
#include "framework/core/time.h"
#include "framework/runtime/launch/child_program.h"
#include "framework/runtime/launch/listeners.h"
#include "framework/runtime/launch/output_relay.h"
#include "framework/runtime/launch/process_folder.h"
#include "framework/runtime/launch/rank_processes.h"
#include "framework/runtime/launch/stop_signal.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

// Before a stop is sent: for the records of ranks that are there, and for the first rank.
constexpr Nanos kReadyWait = FromSeconds(10);
constexpr Nanos kStartWait = FromSeconds(2);

// Longer than a rank may be stopped: the ranks' own watch, which ends the run as well, knows who waits
// for whom.
constexpr double kAfterTheRanks = 3;
constexpr double kPollSeconds = 0.1, kStartPollSeconds = 0.005;  // of BlockedSignals::Wait
constexpr Nanos kStartWatch = FromSeconds(10);                   // at most
constexpr int kPollsALook = 5;  // between two looks at the processes
// How long mpirun may go on, in looks: a time in which this process itself was stopped is not among them.
constexpr int kLooksWithoutRanks = 20;  // when none of its ranks lives: 10 s
constexpr int kLooksBehindTheEnd = 10;  // when all have said their last word, or one is lost: 5 s
constexpr int kLooksOfLeaving = 30;     // while some that have said it still leave MPI: 15 s
constexpr int kLooksBeforeRanks = 2 * 120;  // before the first one comes: 2 minutes
constexpr int kLooksOnHosts = 5 * 120;  // and where other machines have to be reached: 5 minutes

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
        host_(HostName()),
        inherited_(SocketsOf(::getpid())),
        mark_(fmt::format("{}={}", kStatusFolderVariable, folder_.path().string())) {
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
    if (!IsPrivateFolder(folder_.path())) {
      log::Warning(
          "{}: its file system does not keep modes and owners, so ranks cannot say there how they "
          "are; set TMPDIR to a folder on another one",
          folder_.path().parent_path().string());
    }
  }

  JobEnd Watch(const BlockedSignals& signals) {
    int status = 0;
    while (::waitpid(mpirun_, &status, WNOHANG) == 0) {
      // Ranks that come up are seen at once: of one that dies before, nobody knows which it was.
      const bool starts = !AllFound() && !all_in_ && WallNow() - begin_ < kStartWatch;
      OnSignal(signals.Wait(starts ? kStartPollSeconds : kPollSeconds));
      FindProcesses();
      const std::vector<RankStatus> records = Records();
      CloseDoors(records);
      FindLost(records);
      SendStop(records);
      if (!starts && ++polls_ % kPollsALook == 0) LookAtProcesses(records);
    }
    end_.exit_status = CodeOfStatus(status);
    relay_.reset();  // all that was said comes before how it ended
    FindUnseen();
    end_.ranks = Records();
    end_.all_said = HaveAllSaid(end_.ranks);
    if (WIFSIGNALED(status) && !killed_) {
      end_.mpirun_signal = WTERMSIG(status);
      SignalRanks(end_.ranks, SIGKILL);  // nobody else would
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

  bool HaveAllSaid(const std::vector<RankStatus>& records) const {
    const auto said = std::ranges::count_if(
        records, [](const RankStatus& rank) { return rank.exit_code.has_value(); });
    return said == ranks_;
  }

  // One that fails asks mpirun to end the others.
  static bool HasFailed(const std::vector<RankStatus>& records) {
    return std::ranges::any_of(records, [](const RankStatus& rank) {
      return rank.exit_code.value_or(0) != 0 &&
             rank.exit_code != static_cast<int>(ExitCode::kStopped);
    });
  }

  bool IsOurs(const RankStatus& rank) const {
    return rank.host == host_ && IsRank(rank.pid, rank.rank, mark_);
  }

  // Nobody else has to come in to an mpirun whose ranks are all on this machine.
  void CloseDoors(const std::vector<RankStatus>& records) {
    if (!all_here_ || all_in_) return;
    all_in_ = std::ranges::count_if(records, &RankStatus::says) == ranks_;
    CloseListeners(mpirun_, all_in_ ? Listeners::kAll : Listeners::kOnEveryAddress, inherited_);
  }

  void LookAtProcesses(const std::vector<RankStatus>& records) {
    const bool any_stopped = LookForStopped(records);
    if (!any_stopped) LookForHang(records);
  }

  // A rank that was stopped neither moves nor dies, whatever it was doing.
  bool LookForStopped(const std::vector<RankStatus>& records) {
    bool any = false;
    for (const RankStatus& rank : records) {
      if (rank.host != host_) continue;  // one that has ended may be stopped on its way out
      const bool is_stopped = IsStopped(rank.pid) && IsOurs(rank);
      any |= is_stopped;
      if (!stopped_.IsTooLong(rank.rank, is_stopped) || killed_) continue;
      end_.stopped = rank.rank;
      KillAll();
    }
    return any;
  }

  // mpirun ends within moments of its ranks, and ends the others when one is lost; unless it hangs.
  void LookForHang(const std::vector<RankStatus>& records) {
    const std::optional<int> looks_max = LooksLeft(records);
    looks_ = looks_max == former_looks_max_ ? looks_ + 1 : 0;
    former_looks_max_ = looks_max;
    if (!looks_max || looks_ <= *looks_max || killed_) return;
    if (HaveAllSaid(records)) {
      log::Warning("mpirun did not end with its ranks, and is killed");
    }
    end_.mpirun_hung = true;
    KillAll();
  }

  // For how many looks mpirun may go on in this state; none: for any number.
  std::optional<int> LooksLeft(const std::vector<RankStatus>& records) const {
    // Ranks elsewhere are not seen, and a wrapper around mpirun may hide its children: their records speak for them.
    const bool is_alive =
        (processes_.empty() && !all_here_) ||
        std::ranges::any_of(records, [this](const RankStatus& rank) { return IsOurs(rank); });
    if (HaveAllSaid(records)) return is_alive ? kLooksOfLeaving : kLooksBehindTheEnd;
    if (end_.first_lost) return kLooksBehindTheEnd;
    if (is_alive && !HasFailed(records)) return std::nullopt;
    if (!records.empty()) return kLooksWithoutRanks;
    return all_here_ ? kLooksBeforeRanks : kLooksOnHosts;
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
      if (!said_all) return NoteLost(ended, records);
    }
    std::vector<int> silent;  // gone before they could say anything
    for (const RankStatus& rank : records) {
      if (rank.exit_code || rank.host != host_ || IsAlive(rank.pid)) continue;
      if (rank.says) return NoteLost(rank.rank, records);
      silent.push_back(rank.rank);
    }
    // mpirun ends the others as soon as one is lost: of several that are gone, nobody knows which was first.
    if (silent.size() == 1) NoteLost(silent[0], records);
  }

  void NoteLost(int lost, const std::vector<RankStatus>& records) {
    end_.first_lost = lost;
    const auto rank = std::ranges::find(records, lost, &RankStatus::rank);
    if (rank != records.end()) end_.lost_status = ExitStatusOfZombie(rank->pid);
  }

  // A rank that has no handler for USR1 yet would be killed by it.  One with a handler has its record soon, or cannot
  // have one, as where the disk is full.
  bool TakesStop(const RankStatus& rank) const {
    return rank.says || (rank.host == host_ && Catches(rank.pid, SIGUSR1));
  }

  void SendStop(const std::vector<RankStatus>& records) {
    if (end_.stop_signal == 0 || stop_sent_ || killed_) return;
    const auto ready =
        std::ranges::count_if(records, [this](const RankStatus& rank) { return TakesStop(rank); });
    const Nanos patience = all_here_ && records.empty() ? kStartWait : kReadyWait;
    if (ready != ranks_ && WallNow() - stop_at_ < patience) return;
    if (all_here_ && ready == 0) {  // there is nothing to be saved, and mpirun may hang
      end_.never_began = true;
      return KillAll();
    }
    // Those that are not seen from here get it from mpirun.
    if (SignalRanks(records, SIGUSR1) != ranks_) ::kill(mpirun_, SIGUSR1);
    stop_sent_ = true;
  }

  // mpirun's ranks are in groups of their own and would outlive it by seconds.
  void KillAll() {
    killed_ = true;
    SignalRanks(Records(), SIGKILL);
    ::kill(-mpirun_, SIGKILL);
  }

  // Returns the number of ranks that got it.
  int SignalRanks(const std::vector<RankStatus>& records, int signal) const {
    int sent = 0;
    for (const RankStatus& rank : records) {
      if (rank.host != host_ || (signal != SIGKILL && !TakesStop(rank))) continue;
      sent += SignalRank(rank.pid, rank.rank, mark_, signal) ? 1 : 0;
    }
    return sent;
  }

  const ProcessFolder folder_;
  const std::unique_ptr<ProcessFolder> shared_memory_;
  const int ranks_;
  const bool all_here_;  // on this machine
  std::unique_ptr<OutputRelay> relay_;
  StoppedRanks stopped_;
  const std::string host_;
  // Sockets that mpirun has from this process: other programs may wait there.
  const std::set<ino_t> inherited_;
  const std::string mark_;  // in the environment of this job's ranks
  const Nanos begin_ = WallNow();
  pid_t mpirun_ = 0;
  JobEnd end_;
  bool killed_ = false;             // by this process
  std::map<int, pid_t> processes_;  // of ranks on this machine, as they were seen
  DeathOrder deaths_;               // of these
  int polls_ = 0;
  int looks_ = 0;                        // since mpirun might have ended
  std::optional<int> former_looks_max_;  // at the look before
  bool all_in_ = false;                  // all ranks have had their records
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
    const Verdict verdict = ClassifyExit(Job(options, arguments).Watch(signals), options.resume);
    Tell(verdict);
    if (!verdict.rank_lost || restarts == options.max_restarts) {
      TellWhatGoesOn(options, verdict);
      return verdict.exit_code;
    }
    // Until the run has a checkpoint of its own it begins as the user said, which may be with another run's.
    const bool has_checkpoint = !options.newest_checkpoint || !options.newest_checkpoint().empty();
    if (has_checkpoint) arguments = WithResumeAuto(options.arguments);
    log::Warning(
        "restart {} of {}, {}", restarts + 1, options.max_restarts,
        has_checkpoint ? "with --resume auto" : "from its start: there is no checkpoint yet");
  }
}

}  // namespace dtrain
