#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "framework/core/text.h"
#include "framework/data/files/download.h"

namespace dtrain {
namespace {

struct KeepOfDownload {
  enum { kBar, kRate, kBytes, kTimeLeft, kName, kPercent };
};

constexpr double kNoRate = 0.2;  // seconds, too short to measure a rate

}  // namespace

ProgressBar::ProgressBar(std::string label, int64_t total, ProgressDisplay display)
    : label_(std::move(label)), total_(total), display_(std::move(display)) {}

ProgressBar::~ProgressBar() {
  if (first_done_ >= 0) display_.Clear();
}

void ProgressBar::Update(int64_t done, Nanos now) {
  if (first_done_ < 0) {
    first_done_ = done;
    started_ = now;
    if (!display_.rewritten()) display_.Wait(now);
  }
  if (!display_.Due(now)) return;
  const double seconds = ToSeconds(now - started_);
  const double rate = seconds > kNoRate ? static_cast<double>(done - first_done_) / seconds : 0;
  display_.Show(PartsOf(done, rate), now);
}

ProgressDisplay::Parts ProgressBar::PartsOf(int64_t done, double bytes_per_second) const {
  using Keep = KeepOfDownload;
  const double bytes = static_cast<double>(done), total = static_cast<double>(total_);
  ProgressDisplay::Parts parts = {{label_, Keep::kName}};
  std::string size = HumanBytes(bytes);
  if (total_ > 0) {
    const double fraction = std::clamp(bytes / total, 0.0, 1.0);
    parts.push_back({"", Keep::kBar, fraction});
    parts.push_back({fmt::format("{:.0f} %", 100 * fraction), Keep::kPercent});
    size += " of " + HumanBytes(total);
  }
  parts.push_back({size, Keep::kBytes});
  if (bytes_per_second <= 0) return parts;
  parts.push_back({HumanBytes(bytes_per_second) + "/s", Keep::kRate});
  const std::string left = total_ > 0 ? TimeLeft((total - bytes) / bytes_per_second) : "";
  if (!left.empty()) parts.push_back({left, Keep::kTimeLeft});
  return parts;
}

}  // namespace dtrain
