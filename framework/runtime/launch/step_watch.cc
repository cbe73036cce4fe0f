#include "framework/runtime/launch/step_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "framework/runtime/launch/rank_processes.h"

namespace dtrain {
namespace {

constexpr double kLookSeconds = 0.25;
constexpr int64_t kLongest = 20, kFirst = 10;

}  // namespace

StepWatch::StepWatch(double stall_seconds, std::function<void(const std::string&)> on_hung)
    : looks_min_(std::max<int64_t>(
          1, static_cast<int64_t>((stall_seconds > 0 ? stall_seconds : kStoppedSeconds) /
                                  kLookSeconds))),
      on_hung_(std::move(on_hung)),
      thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

StepWatch::~StepWatch() = default;

// Time in looks: one in which this process was stopped (Ctrl-Z, a debugger) is none.
void StepWatch::Watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  const auto look = std::chrono::duration<double>(kLookSeconds);
  int64_t seen = 0;
  int64_t looks = 0, longest = 0;  // of this step, of all
  while (!wake.wait_for(lock, stop, look, [&] { return stop.stop_requested(); })) {
    const int64_t begun = begun_.load(std::memory_order_acquire);
    if (begun != seen || begun == resting_at_.load(std::memory_order_relaxed)) {
      if (seen > 0) longest = std::max(longest, looks + 1);
      seen = begun;
      looks = 0;
      continue;
    }
    ++looks;
    const int64_t most =
        longest == 0 ? kFirst * looks_min_ : std::max(looks_min_, kLongest * longest);
    if (looks <= most) continue;
    on_hung_(fmt::format(
        "a step has not ended for {:.0f} s{}", static_cast<double>(looks) * kLookSeconds,
        longest == 0 ? ", the first one"
                     : fmt::format(", and the longest one before took {:.0f} s at most",
                                   static_cast<double>(longest) * kLookSeconds + 0.5)));
    return;
  }
}

}  // namespace dtrain
