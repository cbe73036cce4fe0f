#include "framework/runtime/launch/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/runtime/launch/child_program.h"

namespace dtrain {
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
  if (rank.pid == 0) return fmt::format("rank {}", rank.rank);  // never seen
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

// The rank whose own failure ended the job.  Those that lost a peer only followed.
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

// Only mpirun's exit status is known (ranks on other hosts, or none that got so far).
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

// The ranks' own words decide: each has said how it ended, or rank 0 has, which ends after the others.
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
    return {kStalled, fmt::format("{} did not answer {}: it was stopped, and nobody let it go on",
                                  Who(*rank), Where(*rank))};
  }
  if (end.never_began) return {kStopped, "stopped before any rank had begun; go on with " + resume};
  if (end.exit_status == 0) return {};
  if (end.exit_status == kStopped) return Stopped(end, resume);
  // Without mpirun's word that of the ranks counts.
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

}  // namespace

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
      ++i;  // and its value
    } else if (!arguments[i].starts_with("--resume=")) {
      result.push_back(arguments[i]);
    }
  }
  result.insert(result.end(), {"--resume", "auto"});
  return result;
}

}  // namespace dtrain
