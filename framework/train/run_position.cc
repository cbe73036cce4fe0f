#include "framework/train/run_position.h"

namespace dtrain {
namespace {

double Mean(double sum, int64_t samples) {
  return sum / static_cast<double>(std::max<int64_t>(samples, 1));
}

// True if a multiple of `every` lies in (before, now].
bool Passed(int64_t every, int64_t before, int64_t now) {
  return every > 0 && now / every > before / every;
}

}  // namespace

void RunPosition::MoveTo(int64_t samples_applied) {
  now_.samples_applied = samples_applied;
  now_.step = rule_.StepsOf(samples_applied);
  now_.epoch = samples_applied / rule_.epoch_samples;
}

void RunPosition::Add(const StepOutcome& outcome) {
  loss_ = Mean(outcome.loss_sum, outcome.samples);
  before_ = now_.samples_applied;
  MoveTo(now_.samples_applied + outcome.samples);
}

bool RunPosition::UpdateProgress(const Quiescence::Progress& progress) {
  if (progress.samples_applied <= now_.samples_applied) return false;
  loss_ = Mean(progress.loss_sum - progress_.loss_sum, progress.samples - progress_.samples);
  progress_ = progress;
  before_ = std::max<int64_t>(progress.samples_applied - rule_.batch, 0);
  MoveTo(progress.samples_applied);
  return true;
}

void RunPosition::Describe(Summary& summary) const {
  summary.epochs = epochs();
  summary.steps = static_cast<double>(now_.samples_applied) / static_cast<double>(rule_.batch);
  summary.step = now_.step;
  if (first_.step > 0) summary.resumed_step = first_.step;
}

bool EvaluationDue(const RunConfig& config, const BoundaryPoint& point) {
  return point.run_ends ||
         Passed(config.evaluate.every_epochs, point.before.epoch, point.now.epoch) ||
         Passed(config.evaluate.every_steps, point.before.step, point.now.step);
}

bool CheckpointDue(const RunConfig& config, const BoundaryPoint& point, int64_t saved_samples) {
  if (point.now.samples_applied == saved_samples) return false;
  const CheckpointConfig& when = config.checkpoint;
  return point.stopped || point.run_ends ||
         Passed(when.every_epochs, point.before.epoch, point.now.epoch) ||
         Passed(when.every_steps, point.before.step, point.now.step);
}

}  // namespace dtrain
