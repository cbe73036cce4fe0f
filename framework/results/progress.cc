#include "framework/results/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace dtrain {
namespace {

constexpr Nanos kShortWait = FromSeconds(1);  // shorter waits are not shown
constexpr Nanos kLongStep = FromSeconds(10);  // longer steps are shown with their duration so far

// Lists the priorities of the parts of the line.  The part with the highest priority is dropped last on a narrow
// terminal.
struct Keep {
  enum { kSlowestRank, kBar, kRate, kLoss, kEpoch, kTimeLeft, kStep, kDoing };
};

}  // namespace

Progress::Progress(Nanos now, ProgressDisplay display) : display_(std::move(display)), since_(now) {
  display_.Wait(now);
}

void Progress::Begin(const RunLength& length, const ProgressPoint& first) {
  const std::lock_guard lock(mutex_);
  length_ = length;
  point_ = first;
}

void Progress::Update(const ProgressPoint& point, Nanos now) {
  const std::lock_guard lock(mutex_);
  point_ = point;
  doing_ = Doing::kTraining;
  since_ = now;
  rate_.Measure(static_cast<double>(point.step), now);
  // The first line is shown as soon as the rate is known.
  if (rate_.per_second() == 0 || (shown_ && !display_.Due(now))) return;
  shown_ = true;
  display_.Show(OfSteps(), now);
}

void Progress::Do(Doing doing, Nanos now) {
  const std::lock_guard lock(mutex_);
  if (doing == doing_) return;
  doing_ = doing;
  since_ = now;
  rate_.Pause();
}

void Progress::Tick(Nanos now) {
  const std::lock_guard lock(mutex_);
  if (ended_ || !display_.Due(now)) return;
  const bool training = doing_ == Doing::kTraining;
  const Nanos time = now - since_;
  if (training && time < kLongStep && rate_.per_second() > 0) {
    display_.Show(OfSteps(), now);
  } else if (time >= kShortWait) {
    display_.Show(OfWaiting(now), now);
  }
}

void Progress::End() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  display_.Clear();
}

Progress::Parts Progress::Position() const {
  if (length_.steps == 0) return {};
  return {{fmt::format("epoch {}/{}", std::min(point_.epoch, length_.epochs), length_.epochs),
           Keep::kEpoch},
          {fmt::format("step {}/{}", point_.step, length_.steps), Keep::kStep}};
}

Progress::Parts Progress::OfSteps() const {
  const double steps = static_cast<double>(length_.steps), step = static_cast<double>(point_.step);
  Parts parts = Position();
  parts.push_back({"", Keep::kBar, step / std::max(steps, 1.0)});
  const double samples = rate_.per_second() * static_cast<double>(length_.batch);
  parts.push_back({fmt::format("{:.0f} samples/s", samples), Keep::kRate});
  parts.push_back({fmt::format("loss {:.4g}", point_.loss), Keep::kLoss});
  const std::string left = rate_.Left(steps - step);
  if (!left.empty()) parts.push_back({left, Keep::kTimeLeft});
  if (point_.slowest_rank >= 0) {
    parts.push_back({fmt::format("slowest rank {}", point_.slowest_rank), Keep::kSlowestRank});
  }
  return parts;
}

Progress::Parts Progress::OfWaiting(Nanos now) const {
  Parts parts = Position();
  std::string what(NameOf(doing_));
  if (doing_ == Doing::kTraining) what += fmt::format(" step {}", point_.step + 1);
  parts.push_back({fmt::format("{} for {}", what, WholeSeconds(now - since_)), Keep::kDoing});
  return parts;
}

}  // namespace dtrain
