#include "framework/core/progress_display.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "framework/core/log.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

constexpr Nanos kLineInterval = FromSeconds(0.2);
constexpr Nanos kLogInterval = FromSeconds(30);
constexpr Nanos kRateInterval = FromSeconds(0.1);  // shorter ones are too noisy to measure
constexpr double kSmoothing = 0.2;                 // weight of the newest interval
constexpr Nanos kMoment = FromSeconds(1);

void WriteToLog(const ProgressDisplay::Parts& parts) {
  std::vector<std::string> texts;
  for (const status_line::Part& part : parts) {
    if (part.bar < 0) texts.push_back(part.text);
  }
  if (!texts.empty()) log::Info("{}", Join(texts, "  "));
}

}  // namespace

ProgressDisplay::ProgressDisplay()
    : rewritten_(status_line::WhereTo() != status_line::Place::kNowhere),
      writer_(rewritten_ ? status_line::Show : WriteToLog) {}

ProgressDisplay::ProgressDisplay(bool rewritten, Writer writer)
    : rewritten_(rewritten), writer_(std::move(writer)) {}

bool ProgressDisplay::Due(Nanos now) const {
  return now - shown_at_ >= (rewritten_ ? kLineInterval : kLogInterval);
}

void ProgressDisplay::Show(const Parts& parts, Nanos now) {
  shown_at_ = now;
  writer_(parts);
}

void ProgressDisplay::Clear() {
  if (rewritten_) writer_({});
}

void ProgressRate::Measure(double done, Nanos now) {
  if (measured_at_ >= 0 && now - measured_at_ < kRateInterval) return;
  if (measured_at_ >= 0) {
    const double rate = (done - measured_) / ToSeconds(now - measured_at_);
    rate_ += (rate_ == 0 ? 1 : kSmoothing) * (rate - rate_);
  }
  measured_at_ = now;
  measured_ = done;
}

std::string ProgressRate::Left(double steps) const {
  return TimeLeft(std::max(steps, 0.0) / rate_);
}

std::string WholeSeconds(Nanos time) {
  const double seconds = std::floor(ToSeconds(time));
  return seconds < 60 ? fmt::format("{:.0f} s", seconds) : HumanSeconds(seconds);
}

// The ticker's thread starts with all signals blocked, so that other threads receive those that end the program.
BusyProgress::BusyProgress(std::string what) : what_(std::move(what)), begin_(WallNow()) {
  display_.Wait(begin_);
  ticker_.emplace([this](Nanos now) {
    if (now - begin_ < kMoment || !display_.Due(now)) return;
    display_.Show({{fmt::format("{} for {}", what_, WholeSeconds(now - begin_))}}, now);
  });
}

BusyProgress::~BusyProgress() {
  ticker_.reset();
  display_.Clear();
}

}  // namespace dtrain
