// LocalSgdWorker: the only actor of local_sgd.
//
//   step ends:              weights <- solver step with the mean gradient of the worker's own samples
//   every `period` steps:   weights <- sum over workers w of share(w) x weights(w)
//
// share(w) is the part of the samples (or terms of the loss) of these steps that worker w computed,
// so the shares add up to 1.  The solver's vectors stay local.  In the steps between, the workers
// exchange nothing: none knows the loss of the others, or whether one was asked to stop
// (StepOutcome::alone).  Before the run pauses they exchange these, but no weights.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/strategy.h"

namespace dtrain::local_sgd {

class LocalSgdWorker : public Actor {
 public:
  LocalSgdWorker(ActorId id, const ActorSetup& setup, int64_t period);

  std::vector<VectorSpec> Vectors() const override;
  void OnBegin(Effects& effects) override;
  void OnEnd(const StepReport& report, Effects& effects) override;
  void OnOutcome(const StepOutcome& outcome, Effects&) override { outcome_ = outcome; }
  void OnReduced(VectorId vector, Range range, Effects& effects) override;
  double MasterShare() const override;

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kGradient, kWeights, kMean };

  const ActorId id_;
  const Range whole_;
  const int64_t period_;

  int64_t step_ = 0;     // steps begun
  int64_t local_ = 0;    // steps since the last mean
  double shares_ = 0;    // sum of this worker's shares of the batches of these steps
  int64_t means_ = 0;    // means taken
  StepOutcome outcome_;  // of the step that ends with a mean
};

}  // namespace dtrain::local_sgd
