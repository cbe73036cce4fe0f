#include "framework/runtime/launch/rank_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace dtrain {
namespace {

constexpr double kLookSeconds = 0.5;

std::vector<RankProcess> OthersOfLaunch(int rank, const std::vector<RankProcess>& ranks) {
  std::vector<RankProcess> others;
  for (const RankProcess& other : ranks) {
    if (other.rank != rank && IsRank(other.pid, other.rank)) others.push_back(other);
  }
  return others;
}

}  // namespace

RankWatch::RankWatch(int rank, std::vector<RankProcess> ranks, double stall_seconds,
                     std::function<void(const std::string&)> on_lost)
    : rank_(rank),
      ranks_(OthersOfLaunch(rank, ranks)),
      looks_max_(
          static_cast<int>((stall_seconds > 0 ? stall_seconds : kStoppedSeconds) / kLookSeconds)),
      on_lost_(std::move(on_lost)) {
  if (!ranks_.empty()) thread_ = std::jthread([this](std::stop_token stop) { Watch(stop); });
}

RankWatch::~RankWatch() = default;

void RankWatch::Watch(const std::stop_token& stop) {
  std::vector<int> stopped_looks(ranks_.size());
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  const auto look = std::chrono::duration<double>(kLookSeconds);
  while (!wake.wait_for(lock, stop, look, [&] { return stop.stop_requested(); })) {
    if (LookFinds(stopped_looks)) return;
  }
}

bool RankWatch::LookFinds(std::vector<int>& stopped_looks) {
  bool is_lowest = true;
  const RankProcess* lost = nullptr;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const bool stopped = IsStopped(ranks_[i].pid);
    stopped_looks[i] = stopped ? stopped_looks[i] + 1 : 0;
    if (!stopped && ranks_[i].rank < rank_) is_lowest = false;
    if (stopped_looks[i] > looks_max_ && lost == nullptr) lost = &ranks_[i];
  }
  if (lost == nullptr || !is_lowest) return false;
  on_lost_(fmt::format("rank {} (pid {}) did not answer: it was stopped, and nobody let it go on",
                       lost->rank, lost->pid));
  return true;
}

}  // namespace dtrain
