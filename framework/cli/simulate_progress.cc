#include "framework/cli/simulate_progress.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace dtrain {
namespace {

struct KeepOfSimulation {
  enum { kBar, kName, kTime, kRun, kTimeLeft, kStep };
};

}  // namespace

SimulateProgress::SimulateProgress(std::string name, int run, int runs, Nanos now,
                                   ProgressDisplay display)
    : name_(std::move(name)), run_(run), runs_(runs), display_(std::move(display)) {
  display_.Wait(now);
}

void SimulateProgress::Tick(const SimulationPoint& at, Nanos now) {
  rate_.Measure(at.steps_done, now);
  if (display_.Due(now)) display_.Show(PartsOf(at), now);
}

ProgressDisplay::Parts SimulateProgress::PartsOf(const SimulationPoint& at) const {
  using Keep = KeepOfSimulation;
  ProgressDisplay::Parts parts;
  if (!name_.empty()) parts.push_back({name_, Keep::kName});
  if (runs_ > 1) parts.push_back({fmt::format("run {}/{}", run_, runs_), Keep::kRun});
  parts.push_back({fmt::format("step {:.0f}/{:.0f}", at.steps_done, at.steps), Keep::kStep});
  parts.push_back({"", Keep::kBar, at.steps_done / std::max(at.steps, 1.0)});
  parts.push_back({fmt::format("{:.1f} virtual s", ToSeconds(at.time)), Keep::kTime});
  const std::string left = rate_.Left(at.steps - at.steps_done);
  if (!left.empty()) parts.push_back({left, Keep::kTimeLeft});
  return parts;
}

}  // namespace dtrain
