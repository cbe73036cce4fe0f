#include "framework/runtime/run/cadence.h"

namespace dtrain {
namespace {

// Whether a multiple of `every` lies in (before, now].
bool Passed(int64_t every, int64_t before, int64_t now) {
  return every > 0 && now / every > before / every;
}

}  // namespace

bool EvaluationDue(const RunConfig& config, const RestPoint& point) {
  return point.run_ends ||
         Passed(config.evaluate_every_epochs, point.before.epoch, point.now.epoch);
}

bool CheckpointDue(const RunConfig& config, const RestPoint& point, int64_t saved_samples) {
  if (point.now.samples_applied == saved_samples) return false;
  const RunConfig::Checkpoint& when = config.checkpoint;
  return point.stopped || point.run_ends ||
         Passed(when.every_epochs, point.before.epoch, point.now.epoch) ||
         Passed(when.every_steps, point.before.step, point.now.step);
}

}  // namespace dtrain
