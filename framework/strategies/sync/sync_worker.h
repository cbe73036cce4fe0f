// SyncWorker: the one actor of all synchronous strategies.  They differ in their buckets only.
//
// A bucket is reduced as soon as its last gradient is final, while the backward pass goes on, and
// applied as soon as it is reduced (or all at once, when the solver needs the whole gradient).  The
// next step starts when every bucket is applied: all workers then hold the same weights.
#pragma once

#include <vector>

#include "framework/strategies/actor.h"

namespace dtrain {

class SyncWorker : public Actor {
 public:
  // `buckets`: contiguous, ascending, covering the arena.
  SyncWorker(std::string strategy, std::vector<Range> buckets, bool whole_update);

  void OnBegin(Effects& effects) override;
  void OnReady(Range range, Effects& effects) override;
  void OnReduced(Range range, Effects& effects) override;
  void OnApplied(Range range, Effects& effects) override;
  std::string Describe() const override;

 private:
  bool StepDone() const { return applied_ == total_; }

  const std::string strategy_;
  const std::vector<Range> buckets_;
  const bool whole_update_;
  const int64_t total_;    // elements
  int64_t step_ = 0;       // steps begun
  int64_t ready_ = 0;      // elements final, reduced and applied in this step
  int64_t reduced_ = 0;
  int64_t applied_ = 0;
  size_t sent_ = 0;        // buckets handed to Reduce in this step
};

}  // namespace dtrain
