#include "framework/strategies/sync/sync_worker.h"

#include <fmt/format.h>

#include "framework/core/check.h"

namespace dtrain {

SyncWorker::SyncWorker(std::string strategy, const ActorSetup& setup, MergeStart start)
    : strategy_(std::move(strategy)),
      buckets_(setup.buckets),
      whole_update_(setup.whole_update),
      start_(setup.compress.clip_norm > 0 ? MergeStart::kAfterBackward : start),
      compresses_(setup.compress.on()),
      keeps_momentum_(setup.compress.momentum > 0),
      total_(buckets_.empty() ? 0 : buckets_.back().end) {
  reduced_ = total_;
}

std::vector<VectorSpec> SyncWorker::Vectors() const {
  std::vector<VectorSpec> vectors = {{"gradient", VectorRole::kGradient, {0, total_}},
                                     {"weights", VectorRole::kMaster, {0, total_}}};
  if (compresses_) vectors.push_back({kResidualName, VectorRole::kResidual, {0, total_}});
  if (keeps_momentum_) vectors.push_back({kVelocityName, VectorRole::kVelocity, {0, total_}});
  return vectors;
}

void SyncWorker::OnBegin(Effects& effects) {
  DT_CHECK(StepDone()) << Describe();
  ++step_;
  ready_ = reduced_ = 0;
  sent_ = 0;
  effects.StartStep();
}

void SyncWorker::OnReady(Range range, Effects& effects) {
  DT_CHECK(range.begin == ready_) << "gradients out of backward order at " << range.begin << "; "
                                  << Describe();
  ready_ = range.end;
  if (start_ == MergeStart::kAfterBackward && ready_ < total_) return;
  while (sent_ < buckets_.size() && buckets_[sent_].end <= ready_)
    effects.Reduce(kGradientVector, buckets_[sent_++]);
}

void SyncWorker::OnOutcome(const StepOutcome& outcome, Effects&) { outcome_ = outcome; }

void SyncWorker::OnReduced(VectorId, Range range, Effects& effects) {
  reduced_ += range.size();
  if (!whole_update_) {
    effects.Apply({.gradient = kGradientVector, .range = range});
  } else if (StepDone()) {
    effects.Apply({.gradient = kGradientVector});
  }
  if (StepDone()) effects.EndStep(outcome_);
}

// Between steps the number of the step is the only state.
void SyncWorker::Visit(StateVisitor& visitor) { visitor.Int("step", step_); }

std::string SyncWorker::Describe() const {
  return fmt::format(
      "{} worker: step {}, {} of {} buckets sent, {:.0f} % of the gradient reduced", strategy_,
      step_, sent_, buckets_.size(),
      100.0 * static_cast<double>(reduced_) / static_cast<double>(std::max<int64_t>(total_, 1)));
}

}  // namespace dtrain
