#include "framework/runtime/launch/rank_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace dtrain {
namespace {

constexpr double kLookSeconds = 0.5;

}  // namespace

RankWatch::RankWatch(int rank, pid_t launcher, double stall_seconds,
                     std::function<void(const std::string&)> on_lost)
    : rank_(rank),
      launcher_(launcher),
      looks_max_(
          static_cast<int>((stall_seconds > 0 ? stall_seconds : kStoppedSeconds) / kLookSeconds)),
      on_lost_(std::move(on_lost)),
      thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

RankWatch::~RankWatch() = default;

void RankWatch::Watch(const std::stop_token& stop) {
  std::map<int, int> stopped_looks;  // by rank, in a row
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  const auto look = std::chrono::duration<double>(kLookSeconds);
  while (!wake.wait_for(lock, stop, look, [&] { return stop.stop_requested(); })) {
    if (LookFinds(stopped_looks)) return;
  }
}

bool RankWatch::LookFinds(std::map<int, int>& stopped_looks) {
  bool is_lowest = true;
  RankProcess lost;
  for (const RankProcess& other : RankProcesses(launcher_)) {
    if (other.rank == rank_) continue;
    const bool stopped = IsStopped(other.pid);
    int& looks = stopped_looks[other.rank];
    looks = stopped ? looks + 1 : 0;
    if (!stopped && other.rank < rank_) is_lowest = false;
    if (looks > looks_max_ && lost.pid == 0) lost = other;
  }
  if (lost.pid == 0 || !is_lowest) return false;
  on_lost_(fmt::format("rank {} (pid {}) did not answer: it was stopped, and nobody let it go on",
                       lost.rank, lost.pid));
  return true;
}

}  // namespace dtrain
