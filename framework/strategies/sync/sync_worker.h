// SyncWorker: the only actor of the synchronous strategies.  They differ in their buckets, and in
// the time at which the first one may start.
//
// A bucket is reduced as soon as its last gradient is final, while the backward pass continues (or,
// in some strategies, after it).  It is applied as soon as it is reduced, or all buckets are
// applied at once if the solver needs the whole gradient.  The step ends after the last update,
// when all workers have the same weights.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/strategy.h"
#include "framework/strategies/sync/merging.h"

namespace dtrain {

class SyncWorker : public Actor {
 public:
  // The buckets of `setup` are contiguous, ascending and cover the arena.  With a compressor only
  // selected entries are summed, and the worker keeps the others in a residual.  If it also keeps
  // the solver's momentum, it has a velocity.  If it clips the gradient before that, it sends
  // nothing before the whole gradient is final.
  // `strategy`: the strategy's name, for Describe.
  SyncWorker(std::string strategy, const ActorSetup& setup, MergeStart start = MergeStart::kReady);

  std::vector<VectorSpec> Vectors() const override;
  void OnBegin(Effects& effects) override;
  void OnReady(Range range, Effects& effects) override;
  void OnOutcome(const StepOutcome& outcome, Effects& effects) override;
  void OnReduced(VectorId vector, Range range, Effects& effects) override;
  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;

 private:
  enum Vector : VectorId { kGradientVector, kWeightsVector };

  bool StepDone() const { return reduced_ == total_; }

  const std::string strategy_;
  const std::vector<Range> buckets_;
  const bool whole_update_;
  const MergeStart start_;
  const bool compresses_, keeps_momentum_;
  const int64_t total_;  // elements of the arena
  int64_t step_ = 0;     // steps begun
  int64_t ready_ = 0;    // elements final and reduced in this step
  int64_t reduced_ = 0;
  size_t sent_ = 0;      // buckets handed to Reduce in this step
  StepOutcome outcome_;  // of this step, once its last bucket is reduced
};

}  // namespace dtrain
