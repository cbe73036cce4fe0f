#include "framework/launch/rank_watch.h"

#include <fmt/format.h>

#include <utility>

namespace dtrain {
namespace {

constexpr double kRankLookSeconds = 0.5;

}  // namespace

RankWatch::RankWatch(int rank, pid_t launcher, double stall_seconds,
                     std::function<void(const std::string&)> on_lost)
    : rank_(rank),
      launcher_(launcher),
      on_lost_(std::move(on_lost)),
      stopped_(stall_seconds, kRankLookSeconds),
      ticker_([this](Nanos) { Look(); }, FromSeconds(kRankLookSeconds)) {}

RankWatch::~RankWatch() = default;

void RankWatch::Look() {
  if (reported_) return;
  bool is_lowest = true;
  RankProcess lost;
  for (const RankProcess& other : RankProcesses(launcher_)) {
    if (other.rank == rank_) continue;
    const bool is_stopped = IsStopped(other.pid);
    if (!is_stopped && other.rank < rank_) is_lowest = false;
    if (stopped_.IsTooLong(other.rank, is_stopped) && lost.pid == 0) lost = other;
  }
  if (lost.pid == 0 || !is_lowest) return;
  reported_ = true;
  on_lost_(fmt::format("rank {} (pid {}) did not answer: it was stopped and not continued",
                       lost.rank, lost.pid));
}

}  // namespace dtrain
