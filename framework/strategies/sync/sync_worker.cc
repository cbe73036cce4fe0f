#include "framework/strategies/sync/sync_worker.h"

#include <fmt/format.h>

#include "framework/core/check.h"

namespace dtrain {

SyncWorker::SyncWorker(std::string strategy, std::vector<Range> buckets, bool whole_update)
    : strategy_(std::move(strategy)),
      buckets_(std::move(buckets)),
      whole_update_(whole_update),
      total_(buckets_.empty() ? 0 : buckets_.back().end) {
  applied_ = total_;
}

void SyncWorker::OnBegin(Effects& effects) {
  DT_CHECK(StepDone()) << Describe();
  ++step_;
  ready_ = reduced_ = applied_ = 0;
  sent_ = 0;
  effects.StartStep();
}

void SyncWorker::OnReady(Range range, Effects& effects) {
  DT_CHECK(range.begin == ready_) << "gradients out of backward order at " << range.begin << "; "
                                  << Describe();
  ready_ = range.end;
  while (sent_ < buckets_.size() && buckets_[sent_].end <= ready_) effects.Reduce(buckets_[sent_++]);
}

void SyncWorker::OnReduced(Range range, Effects& effects) {
  reduced_ += range.size();
  if (!whole_update_) {
    effects.Apply(range);
  } else if (reduced_ == total_) {
    effects.Apply({0, total_});
  }
}

void SyncWorker::OnApplied(Range range, Effects& effects) {
  applied_ += range.size();
  if (StepDone()) effects.EndStep();
}

std::string SyncWorker::Describe() const {
  return fmt::format("{}: step {}, {} of {} buckets sent, {:.0f} % of the gradient reduced, {:.0f} % applied",
                     strategy_, step_, sent_, buckets_.size(), 100.0 * reduced_ / std::max<int64_t>(total_, 1),
                     100.0 * applied_ / std::max<int64_t>(total_, 1));
}

}  // namespace dtrain
