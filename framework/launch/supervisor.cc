#include "framework/launch/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/process.h"
#include "framework/core/status_line.h"
#include "framework/core/time.h"
#include "framework/launch/child_program.h"
#include "framework/launch/listeners.h"
#include "framework/launch/output_relay.h"
#include "framework/launch/process_folder.h"
#include "framework/launch/rank_processes.h"
#include "framework/launch/stop_signal.h"
#include "framework/launch/world.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

constexpr int kSignalMax = 64;
constexpr int kStopped = static_cast<int>(ExitCode::kStopped);
constexpr int kPeerLost = static_cast<int>(ExitCode::kPeerLost);
constexpr int kStalled = static_cast<int>(ExitCode::kStalled);

bool IsSignal(int status) { return status > kSignalBase && status <= kSignalBase + kSignalMax; }

bool IsOurs(int status) {
  return status <= static_cast<int>(ExitCode::kStalled) || status == kStopped;
}

std::string SignalName(int signal) {
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

std::string Who(const RankStatus& rank) {
  if (rank.pid == 0) return fmt::format("rank {}", rank.rank);  // its process was never seen
  return fmt::format("rank {} ({}, pid {})", rank.rank, rank.host, rank.pid);
}

std::string Where(const RankStatus& rank) {
  return fmt::format("after step {}, {}", rank.step, NameOf(rank.doing));
}

const RankStatus* FindRank(const JobEnd& end, int rank) {
  const auto it = std::find_if(end.ranks.begin(), end.ranks.end(),
                               [&](const RankStatus& status) { return status.rank == rank; });
  return it == end.ranks.end() ? nullptr : &*it;
}

// Returns the rank whose own failure ended the job.  Ranks that lost a peer failed only because of that one.
const RankStatus* FindCulprit(const JobEnd& end) {
  const RankStatus* follower = nullptr;
  for (const RankStatus& rank : end.ranks) {
    if (!rank.exit_code || *rank.exit_code == 0 || *rank.exit_code == kStopped) continue;
    if (*rank.exit_code != kPeerLost) return &rank;
    if (follower == nullptr) follower = &rank;
  }
  return follower;
}

Verdict OfLostRank(const RankStatus& rank, int status) {
  if (IsSignal(status)) {
    return {status, fmt::format("{} was killed by {} {}", Who(rank),
                                SignalName(status - kSignalBase), Where(rank))};
  }
  const int code = IsOurs(status) ? status : kPeerLost;
  return {code, fmt::format("{} left with exit status {} {}", Who(rank), status, Where(rank))};
}

Verdict OfCulprit(const RankStatus& rank) {
  const std::string why = rank.message.empty() ? "" : ": " + rank.message;
  return {*rank.exit_code, fmt::format("{} ended with exit code {} after step {}{}", Who(rank),
                                       *rank.exit_code, rank.step, why)};
}

// Decides by mpirun's exit status alone: the ranks are on other hosts, or none has written a record.
Verdict OfStatus(int status) {
  if (IsSignal(status)) {
    return {status, "a rank was killed by " + SignalName(status - kSignalBase)};
  }
  if (IsOurs(status)) return {status, fmt::format("mpirun ended with exit status {}", status)};
  return {kPeerLost,
          fmt::format("mpirun lost a node or could not start on it (exit status {})", status)};
}

Verdict Stopped(const JobEnd& end, const std::string& resume) {
  int64_t step = 0;
  for (const RankStatus& rank : end.ranks) step = std::max(step, rank.step);
  return {kStopped, StoppedText(step, resume)};
}

bool AnyStopped(const JobEnd& end) {
  return std::any_of(end.ranks.begin(), end.ranks.end(),
                     [](const RankStatus& rank) { return rank.exit_code == kStopped; });
}

// Decides by the ranks' records: each has its exit code, or that of rank 0 has, which ends last.
Verdict OfEndedRanks(const JobEnd& end, const std::string& resume) {
  if (const RankStatus* culprit = FindCulprit(end)) return OfCulprit(*culprit);
  if (AnyStopped(end)) return Stopped(end, resume);
  return {};
}

Verdict OfHungMpirun(const JobEnd& end, const RankStatus* lost, const std::string& resume) {
  if (FindCulprit(end) != nullptr) return OfEndedRanks(end, resume);
  if (lost != nullptr) {
    if (end.lost_status) return OfLostRank(*lost, *end.lost_status);
    return {kPeerLost, fmt::format("{} was lost {}", Who(*lost), Where(*lost))};
  }
  if (const RankStatus* root = FindRank(end, 0); root != nullptr && root->exit_code) {
    return OfEndedRanks(end, resume);
  }
  if (end.ranks.empty()) return {kPeerLost, "mpirun started no rank, and did not end"};
  return {kPeerLost, "no rank lives, and mpirun did not end"};
}

Verdict Decide(const JobEnd& end, const std::string& resume) {
  if (end.killed) {
    return {kSignalBase + end.stop_signal,
            "left at once at a second " + SignalName(end.stop_signal)};
  }
  if (end.stopped) {
    const RankStatus* const rank = FindRank(end, *end.stopped);
    return {kStalled, fmt::format("{} did not answer {}: it was stopped and not continued",
                                  Who(*rank), Where(*rank))};
  }
  if (end.never_began) return {kStopped, "stopped before any rank had begun; go on with " + resume};
  if (end.exit_status == 0) return {};
  if (end.exit_status == kStopped) return Stopped(end, resume);
  // If mpirun's exit status is not valid, the ranks' records count.
  if (end.all_said && (end.mpirun_hung || end.mpirun_signal != 0)) return OfEndedRanks(end, resume);
  if (end.mpirun_signal != 0) {
    return {kSignalBase + end.mpirun_signal,
            fmt::format("mpirun was killed by {}", SignalName(end.mpirun_signal))};
  }
  const RankStatus* lost = end.first_lost ? FindRank(end, *end.first_lost) : nullptr;
  if (end.mpirun_hung) return OfHungMpirun(end, lost, resume);
  if (lost != nullptr) return OfLostRank(*lost, end.exit_status);
  if (const RankStatus* culprit = FindCulprit(end)) return OfCulprit(*culprit);
  if (AnyStopped(end)) return Stopped(end, resume);
  return OfStatus(end.exit_status);
}

// Waits before a stop signal is sent: for all ranks to be ready for it, and for the first rank to start.
constexpr Nanos kReadyWait = FromSeconds(10);
constexpr Nanos kStartWait = FromSeconds(2);

// The supervisor waits this many seconds longer than the ranks' own watch, which also ends the run and knows which rank
// waits for which.
constexpr double kAfterTheRanks = 3;
// Seconds, for BlockedSignals::Wait.
constexpr double kPollSeconds = 0.1, kStartPollSeconds = 0.005;
constexpr Nanos kStartWatch = FromSeconds(10);  // maximum
constexpr int kPollsALook = 5;                  // polls between two looks at the processes
// This is the time that mpirun may go on, in looks, so that a time in which this process itself was stopped does not
// count.
constexpr int kLooksWithoutRanks = 20;  // no rank of it is alive: 10 s
// All ranks have written their exit code, or one is lost: 5 s.
constexpr int kLooksBehindTheEnd = 10;
constexpr int kLooksOfLeaving = 30;         // some of these still leave MPI: 15 s
constexpr int kLooksBeforeRanks = 2 * 120;  // before the first rank starts: 2 minutes
constexpr int kLooksOnHosts = 5 * 120;      // the same with other machines to reach: 5 minutes

fs::path TemporaryFolder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (!error) return folder;
  throw RunFileError("there is no folder for temporary files",
                     "set TMPDIR to a folder that can be written");
}

// Creates a folder for Open MPI's shared-memory files.  Returns null if it cannot; Open MPI then chooses the folder.
std::unique_ptr<ProcessFolder> FolderInSharedMemory() {
  try {
    return std::make_unique<ProcessFolder>(kSharedMemory);
  } catch (const RunFileError&) {
    return nullptr;
  }
}

constexpr double kProbeSeconds = 10;
constexpr size_t kProbeLines = 20;

// Starts nothing but /bin/true by this mpirun, and returns what mpirun says of that: the lines that are not empty or
// rules, indented.  Returns "" at a signal.  The run has failed already, so an error here must not hide that.
std::string WordsOfMpirun(const ProgramCommand& command, const fs::path& log,
                          const BlockedSignals& signals) try {
  const pid_t probe = StartMpirun(MakeMpirunProbe(command, log));
  const Nanos begin = WallNow();
  int status = 0;
  while (::waitpid(probe, &status, WNOHANG) == 0) {
    const int signal = signals.Wait(0.02);
    const bool stop = signal != 0 && signal != SIGCHLD;
    if (!stop && WallNow() - begin < FromSeconds(kProbeSeconds)) continue;
    ::kill(-probe, SIGKILL);
    ::waitpid(probe, &status, 0);
    if (stop) return "";
    break;
  }
  std::istringstream lines(ReadFile(log));
  std::string words;
  size_t count = 0;
  for (std::string line; std::getline(lines, line) && count < kProbeLines;) {
    if (line.find_first_not_of("- ") == std::string::npos) continue;
    words += "\n    " + Printable(line);
    ++count;
  }
  return words;
} catch (const Error& error) {
  log::Debug("mpirun's own words are not known: {}", error.what());
  return "";
}

// Starts one mpirun and watches it until it ends.
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
    command_ =
        MakeMpirunCommand({.ranks = options.ranks,
                           .executable = options.executable,
                           .arguments = arguments,
                           .hosts = options.hosts,
                           .status_folder = folder_.path(),
                           .shared_memory = shared_memory_ == nullptr ? "" : shared_memory_->path(),
                           .out = relay_ ? relay_->out() : -1,
                           .err = relay_ ? relay_->err() : -1});
    mpirun_ = StartMpirun(command_);
    if (relay_) relay_->Start();
    if (!IsPrivateFolder(folder_.path())) {
      log::Warning(
          "{}: its file system does not keep modes and owners, so ranks cannot write their status "
          "there; set TMPDIR to a folder on another one",
          folder_.path().parent_path().string());
    }
  }

  JobEnd Watch(const BlockedSignals& signals) {
    int status = 0;
    while (::waitpid(mpirun_, &status, WNOHANG) == 0) {
      // New ranks must be seen at once: if one dies before that, it is not known which rank it was.
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
    relay_.reset();  // all output of the ranks comes before the report of how the run ended
    FindUnseen();
    end_.ranks = Records();
    end_.all_said = HaveAllSaid(end_.ranks);
    if (WIFSIGNALED(status) && !killed_) {
      end_.mpirun_signal = WTERMSIG(status);
      SignalRanks(end_.ranks, SIGKILL);  // mpirun can no longer end them
    }
    const bool began = !end_.ranks.empty() || end_.exit_status == 0 || end_.stop_signal != 0;
    // With other machines mpirun is not quiet.
    if (!began && all_here_ && end_.mpirun_signal != SIGKILL) {
      end_.words = WordsOfMpirun(command_, folder_.path() / "mpirun.txt", signals);
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

  // Returns the status records of the ranks, and an entry for each process that has no record so far.
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

  // If a rank was killed while starting and all others were seen, it must be the missing one.
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

  // True if a rank has failed; it asks mpirun to end the others.
  static bool HasFailed(const std::vector<RankStatus>& records) {
    return std::ranges::any_of(records, [](const RankStatus& rank) {
      return rank.exit_code.value_or(0) != 0 &&
             rank.exit_code != static_cast<int>(ExitCode::kStopped);
    });
  }

  bool IsOurs(const RankStatus& rank) const {
    return rank.host == host_ && IsRank(rank.pid, rank.rank, mark_);
  }

  // Closes mpirun's sockets to new connections, which it does not need if all ranks are on this machine.  Before all
  // ranks have connected, only the sockets on every address are closed.
  void CloseDoors(const std::vector<RankStatus>& records) {
    if (!all_here_ || all_in_) return;
    all_in_ = std::ranges::count_if(records, &RankStatus::says) == ranks_;
    CloseListeners(mpirun_, all_in_ ? Listeners::kAll : Listeners::kOnEveryAddress, inherited_);
  }

  void LookAtProcesses(const std::vector<RankStatus>& records) {
    const bool any_stopped = LookForStopped(records);
    if (!any_stopped) LookForHang(records);
  }

  // Finds a rank that was stopped for too long, and kills all: it neither goes on nor dies, whatever it was doing.
  // Returns true if any rank is stopped now.
  bool LookForStopped(const std::vector<RankStatus>& records) {
    bool any = false;
    for (const RankStatus& rank : records) {
      if (rank.host != host_) continue;  // a rank may also be stopped while it exits
      const bool is_stopped = IsStopped(rank.pid) && IsOurs(rank);
      any |= is_stopped;
      if (!stopped_.IsTooLong(rank.rank, is_stopped) || killed_) continue;
      end_.stopped = rank.rank;
      KillAll();
    }
    return any;
  }

  // Kills an mpirun that hangs.  mpirun should end soon after its ranks, and end the others when one is lost.
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

  // Returns for how many looks mpirun may go on in this state; none means any number.
  std::optional<int> LooksLeft(const std::vector<RankStatus>& records) const {
    // Ranks on other machines are not seen, and a wrapper around mpirun may hide its children: their records count
    // instead.
    const bool is_alive =
        (processes_.empty() && !all_here_) ||
        std::ranges::any_of(records, [this](const RankStatus& rank) { return IsOurs(rank); });
    if (HaveAllSaid(records)) return is_alive ? kLooksOfLeaving : kLooksBehindTheEnd;
    if (end_.first_lost) return kLooksBehindTheEnd;
    if (is_alive && !HasFailed(records)) return std::nullopt;
    if (!records.empty()) return kLooksWithoutRanks;
    return all_here_ ? kLooksBeforeRanks : kLooksOnHosts;
  }

  // Finds a rank that vanished without writing its exit code, unless another rank failed before.  With several machines
  // this process cannot see which was the first; mpirun reports it.
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
    std::vector<int> silent;  // ranks that ended without a record
    for (const RankStatus& rank : records) {
      if (rank.exit_code || rank.host != host_ || IsAlive(rank.pid)) continue;
      if (rank.says) return NoteLost(rank.rank, records);
      silent.push_back(rank.rank);
    }
    // mpirun ends the others as soon as one is lost, so of several that are gone the first is unknown.
    if (silent.size() == 1) NoteLost(silent[0], records);
  }

  void NoteLost(int lost, const std::vector<RankStatus>& records) {
    end_.first_lost = lost;
    const auto rank = std::ranges::find(records, lost, &RankStatus::rank);
    if (rank != records.end()) end_.lost_status = ExitStatusOfZombie(rank->pid);
  }

  // True if the rank can take a stop signal.  USR1 would kill a rank that has no handler for it yet.  A rank with a
  // handler will have its record soon, or cannot have one, for example if the disk is full.
  bool TakesStop(const RankStatus& rank) const {
    return rank.says || (rank.host == host_ && Catches(rank.pid, SIGUSR1));
  }

  void SendStop(const std::vector<RankStatus>& records) {
    if (end_.stop_signal == 0 || stop_sent_ || killed_) return;
    const auto ready =
        std::ranges::count_if(records, [this](const RankStatus& rank) { return TakesStop(rank); });
    const Nanos patience = all_here_ && records.empty() ? kStartWait : kReadyWait;
    if (ready != ranks_ && WallNow() - stop_at_ < patience) return;
    if (all_here_ && ready == 0) {  // nothing must be saved, and mpirun may hang
      end_.never_began = true;
      return KillAll();
    }
    // mpirun passes the signal to the ranks that this process does not see.
    if (SignalRanks(records, SIGUSR1) != ranks_) ::kill(mpirun_, SIGUSR1);
    stop_sent_ = true;
  }

  // Kills mpirun and its ranks, which are in process groups of their own and would outlive it by seconds.
  void KillAll() {
    killed_ = true;
    SignalRanks(Records(), SIGKILL);
    ::kill(-mpirun_, SIGKILL);
  }

  // Returns the number of ranks that got the signal.
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
  const bool all_here_;  // all ranks are on this machine
  std::unique_ptr<OutputRelay> relay_;
  StoppedRanks stopped_;
  const std::string host_;
  // Sockets that mpirun inherited from this process; other programs may be listening on them.
  const std::set<ino_t> inherited_;
  const std::string mark_;  // marks this job's ranks in their environment
  const Nanos begin_ = WallNow();
  ProgramCommand command_;
  pid_t mpirun_ = 0;
  JobEnd end_;
  bool killed_ = false;             // this process killed them
  std::map<int, pid_t> processes_;  // the ranks seen on this machine
  DeathOrder deaths_;               // their order of ending
  int polls_ = 0;
  int looks_ = 0;                        // looks since mpirun should have ended
  std::optional<int> former_looks_max_;  // the limit at the last look
  bool all_in_ = false;                  // all ranks have written a record
  Nanos stop_at_ = 0;
  bool stop_sent_ = false;
};

// Adds mpirun's own words to the verdict on a run of which no rank has lived.
Verdict WithWords(Verdict verdict, const JobEnd& end) {
  if (!end.words.empty()) verdict.line += "; mpirun says:" + end.words;
  return verdict;
}

// Returns how a run that was lost or killed can be continued; "" if it cannot.
std::string HowToGoOn(const SupervisorOptions& options, const Verdict& verdict) {
  const bool goes_on = verdict.rank_lost || verdict.exit_code > kSignalBase ||
                       verdict.exit_code == static_cast<int>(ExitCode::kStalled);
  if (!goes_on || !options.newest_checkpoint) return "";
  const std::string checkpoint = options.newest_checkpoint();
  if (checkpoint.empty()) return "";
  return fmt::format("go on from {} with {}{}", checkpoint, options.resume,
                     verdict.rank_lost && options.max_restarts == 0
                         ? "; with --max-restarts N lost ranks are started again up to N times"
                         : "");
}

// Reports the end of the last start.
void TellEnd(const SupervisorOptions& options, const Verdict& verdict) {
  const std::string hint = HowToGoOn(options, verdict);
  if (verdict.exit_code == static_cast<int>(ExitCode::kStopped)) {
    log::Info("{}", verdict.line);
  } else if (!verdict.line.empty() || !hint.empty()) {
    TellError({static_cast<ExitCode>(verdict.exit_code), verdict.line, hint});
  }
}

}  // namespace

int Supervise(const SupervisorOptions& options) {
  const BlockedSignals signals;
  RemoveLeftFolders(TemporaryFolder());
  RemoveLeftFolders(kSharedMemory);
  std::vector<std::string> arguments = options.arguments;
  for (int restarts = 0;; ++restarts) {
    const JobEnd end = Job(options, arguments).Watch(signals);
    const Verdict verdict = WithWords(ClassifyExit(end, options.resume), end);
    if (!verdict.rank_lost || restarts == options.max_restarts) {
      TellEnd(options, verdict);
      return verdict.exit_code;
    }
    log::Error("{}", verdict.line);
    // Without a checkpoint of its own, the run begins as the user asked, which may be from another run's checkpoint.
    const bool has_checkpoint = !options.newest_checkpoint || !options.newest_checkpoint().empty();
    if (has_checkpoint) arguments = WithResumeAuto(options.arguments);
    log::Warning(
        "restart {} of {}, {}", restarts + 1, options.max_restarts,
        has_checkpoint ? "with --resume auto" : "from its start: there is no checkpoint yet");
  }
}

std::string StoppedText(int64_t step, const std::string& resume) {
  return fmt::format("stopped after step {}; go on with {}", step, resume);
}

Verdict ClassifyExit(const JobEnd& end, const std::string& resume) {
  Verdict verdict = Decide(end, resume);
  verdict.rank_lost = end.stop_signal == 0 && (verdict.exit_code == kPeerLost || end.stopped ||
                                               verdict.exit_code > kSignalBase);
  return verdict;
}

std::vector<std::string> WithResumeAuto(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--resume") {
      ++i;  // skips its value, too
    } else if (!arguments[i].starts_with("--resume=")) {
      result.push_back(arguments[i]);
    }
  }
  result.insert(result.end(), {"--resume", "auto"});
  return result;
}

}  // namespace dtrain
