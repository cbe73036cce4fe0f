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
      stall_seconds_(stall_seconds),
      on_lost_(std::move(on_lost)),
      thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

RankWatch::~RankWatch() = default;

void RankWatch::Watch(const std::stop_token& stop) {
  StoppedRanks stopped(stall_seconds_, kLookSeconds);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  const auto look = std::chrono::duration<double>(kLookSeconds);
  while (!wake.wait_for(lock, stop, look, [&] { return stop.stop_requested(); })) {
    if (LookFinds(stopped)) return;
  }
}

bool RankWatch::LookFinds(StoppedRanks& stopped) {
  bool is_lowest = true;
  RankProcess lost;
  for (const RankProcess& other : RankProcesses(launcher_)) {
    if (other.rank == rank_) continue;
    const bool is_stopped = IsStopped(other.pid);
    if (!is_stopped && other.rank < rank_) is_lowest = false;
    if (stopped.IsTooLong(other.rank, is_stopped) && lost.pid == 0) lost = other;
  }
  if (lost.pid == 0 || !is_lowest) return false;
  on_lost_(fmt::format("rank {} (pid {}) did not answer: it was stopped, and nobody let it go on",
                       lost.rank, lost.pid));
  return true;
}

}  // namespace dtrain
