#include "framework/runtime/results/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/runtime/launch/status_record.h"

namespace dtrain {
namespace {

constexpr Nanos kTerminalInterval = FromSeconds(0.2);
constexpr Nanos kLogInterval = FromSeconds(30);
constexpr Nanos kRateInterval = FromSeconds(0.1);  // shorter ones are too noisy to measure
constexpr double kSmoothing = 0.2;                 // weight of the newest interval
constexpr int kBarWidth = 14;
constexpr char kWipe[] = "\r\x1b[K";

void WriteToStderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void DetectTerminal(ProgressOptions& options) {
  if (log::GetLevel() > log::Level::kInfo) return;  // --quiet
  const char* supervisor = std::getenv(kProgressVariable);
  options.terminal =
      ::isatty(STDERR_FILENO) == 1 || (supervisor != nullptr && std::string(supervisor) == "1");
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
}

Progress::Progress(const ProgressOptions& options, Writer writer)
    : options_(options), writer_(writer ? std::move(writer) : WriteToStderr) {}

void Progress::Update(const ProgressPoint& point, Nanos now) {
  Measure(point, now);
  const Nanos interval = options_.terminal ? kTerminalInterval : kLogInterval;
  if (steps_per_second_ == 0 || (shown_at_ >= 0 && now - shown_at_ < interval)) return;
  shown_at_ = now;
  if (options_.terminal) {
    writer_(kWipe + Text(point));
    visible_ = true;
  } else {
    log::Info("{}", Text(point));
  }
}

void Progress::Pause() {
  if (visible_) writer_(kWipe);
  visible_ = false;
  measured_at_ = -1;
}

void Progress::Measure(const ProgressPoint& point, Nanos now) {
  if (measured_at_ >= 0 && now - measured_at_ < kRateInterval) return;
  if (measured_at_ >= 0) {
    const double rate =
        static_cast<double>(point.step - measured_step_) / ToSeconds(now - measured_at_);
    steps_per_second_ += (steps_per_second_ == 0 ? 1 : kSmoothing) * (rate - steps_per_second_);
  }
  measured_at_ = now;
  measured_step_ = point.step;
}

std::string Progress::Bar(int64_t step) const {
  const double done =
      static_cast<double>(step) / static_cast<double>(std::max<int64_t>(options_.steps, 1));
  const int full = std::clamp(static_cast<int>(done * kBarWidth), 0, kBarWidth);
  const std::string bar = std::string(full, '#') + std::string(kBarWidth - full, '-');
  return options_.color ? "\x1b[32m" + bar + "\x1b[0m" : bar;
}

std::string Progress::Text(const ProgressPoint& point) const {
  const double seconds_left = static_cast<double>(options_.steps - point.step) / steps_per_second_;
  std::string text = fmt::format("epoch {}/{}  step {}/{}  ", point.epoch, options_.epochs,
                                 point.step, options_.steps);
  if (options_.terminal) text += Bar(point.step) + "  ";
  text += fmt::format("{:.0f} samples/s  loss {:.4g}  {} left",
                      steps_per_second_ * static_cast<double>(options_.batch), point.loss,
                      HumanSeconds(seconds_left));
  if (point.slowest_rank >= 0) text += fmt::format("  slowest rank {}", point.slowest_rank);
  return text;
}

}  // namespace dtrain
