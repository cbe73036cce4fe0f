// SyncWorker: the one actor of all synchronous strategies.  They differ in their buckets, and in
// when the first may start.
//
// A bucket is reduced as soon as its last gradient is final, while the backward pass goes on (or
// after it, where that is the strategy), and applied as soon as it is reduced (or all at once, when
// the solver needs the whole gradient).  The step ends behind the last update: all workers then hold
// the same weights.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/strategy.h"
#include "framework/strategies/sync/merging.h"

namespace dtrain {

class SyncWorker : public Actor {
 public:
  // Of `setup`, the buckets are contiguous, ascending and cover the arena.  With a compressor what is
  // summed is a selection, and the worker has a residual for the rest; where it keeps the solver's
  // momentum, a velocity as well, and where it clips what goes into that, nothing is sent before the whole
  // gradient is there.
  // `strategy`: whose schedule it follows, for Describe.
  SyncWorker(std::string strategy, const ActorSetup& setup, MergeStart start = MergeStart::kReady);

  std::vector<VectorSpec> Vectors() const override;
  void OnBegin(Effects& effects) override;
  void OnReady(Range range, Effects& effects) override;
  void OnOutcome(const StepOutcome& outcome, Effects& effects) override;
  void OnReduced(Range range, Effects& effects) override;
  void OnBuckets(const std::vector<Range>& buckets) override;
  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;

 private:
  enum Vector : VectorId { kGradientVector, kWeightsVector };

  bool StepDone() const { return reduced_ == total_; }

  const std::string strategy_;
  std::vector<Range> buckets_;
  const bool whole_update_;
  const MergeStart start_;
  const bool compresses_, keeps_momentum_;
  const int64_t total_;  // elements
  int64_t step_ = 0;     // steps begun
  int64_t ready_ = 0;    // elements final and reduced in this step
  int64_t reduced_ = 0;
  size_t sent_ = 0;      // buckets handed to Reduce in this step
  StepOutcome outcome_;  // of this step, once its last bucket is reduced
};

}  // namespace dtrain
