#include "framework/launch/step_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/launch/rank_processes.h"

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
      ticker_([this](Nanos) { Look(); }, FromSeconds(kLookSeconds)) {}

StepWatch::~StepWatch() = default;

// Measures time in looks, so that the time in which this process was stopped (Ctrl-Z, a debugger) does not count.
void StepWatch::Look() {
  if (reported_) return;
  const int64_t begun = begun_.load(std::memory_order_acquire);
  if (begun != seen_ || begun == paused_at_.load(std::memory_order_relaxed)) {
    if (seen_ > 0) longest_ = std::max(longest_, looks_ + 1);
    seen_ = begun;
    looks_ = 0;
    return;
  }
  ++looks_;
  const int64_t most =
      longest_ == 0 ? kFirst * looks_min_ : std::max(looks_min_, kLongest * longest_);
  if (looks_ <= most) return;
  reported_ = true;
  on_hung_(
      fmt::format("a step has not ended for {:.0f} s{}", static_cast<double>(looks_) * kLookSeconds,
                  longest_ == 0 ? ", the first one"
                                : fmt::format(", and the longest one before took {:.0f} s at most",
                                              static_cast<double>(longest_) * kLookSeconds + 0.5)));
}

}  // namespace dtrain
