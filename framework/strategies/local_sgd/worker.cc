#include "framework/strategies/local_sgd/worker.h"

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/core/state_record.h"

namespace dtrain::local_sgd {

LocalSgdWorker::LocalSgdWorker(ActorId id, const ActorSetup& setup, int64_t period)
    : id_(id), whole_{0, setup.size}, period_(period) {}

std::vector<VectorSpec> LocalSgdWorker::Vectors() const {
  return {{"gradient", VectorRole::kGradient, whole_},
          {"weights", VectorRole::kMaster, whole_},
          {"mean", VectorRole::kPlain, whole_}};
}

void LocalSgdWorker::OnBegin(Effects& effects) {
  ++step_;
  effects.StartStep();
}

// The gradient of a step that all workers share is a sum over this worker's samples, divided by
// those of all.  A local step needs the mean over its own.
void LocalSgdWorker::OnEnd(const StepReport& report, Effects& effects) {
  DT_CHECK(local_ < period_) << Describe();
  const double share = report.share();
  if (share > 0) effects.Apply({.gradient = kGradient, .gradient_factor = 1 / share});
  shares_ += share;
  ++local_;
  if (local_ == period_) {
    effects.Add(kMean, kWeights, shares_ / static_cast<double>(period_));
    effects.Reduce(kMean, whole_);
  }
  // The report goes last, so that it knows of a NaN or infinity in the step's update.
  if (local_ == period_ || report.boundary) {
    return effects.Reduce(kGradient, {whole_.end, whole_.end});
  }
  StepOutcome outcome = OutcomeOf(report);
  outcome.alone = true;
  if (report.global_samples > 0) outcome.samples = report.global_samples;
  // The mean loss of this worker's samples stands for that of all.
  if (share > 0) outcome.loss_sum /= share;
  effects.EndStep(outcome);
}

// Blend leaves frozen parameters as they are, though the sum of their shares may be rounded.
void LocalSgdWorker::OnReduced(VectorId vector, Range, Effects& effects) {
  if (vector == kMean) {
    effects.Blend(kWeights, kMean, 1);
    effects.Clear(kMean);
    return;
  }
  if (local_ == period_) {
    local_ = 0;
    shares_ = 0;
    ++means_;
  }
  effects.EndStep(outcome_);
}

// After a mean all workers have the same weights.
double LocalSgdWorker::MasterShare() const {
  if (local_ == 0) return id_ == 0 ? 1 : 0;
  return shares_ / static_cast<double>(local_);
}

void LocalSgdWorker::Visit(StateVisitor& visitor) {
  visitor.Int("step", step_);
  visitor.Int("local", local_);
  VisitDouble(visitor, "shares", shares_);
  visitor.Int("means", means_);
}

std::string LocalSgdWorker::Describe() const {
  return fmt::format("local_sgd worker {}: step {}, {} of {} steps since the last mean", id_, step_,
                     local_, period_);
}

// Every worker takes part in each mean; worker 0 counts them.
void LocalSgdWorker::Report(ProtocolReport& report) const {
  if (id_ == 0) report.Count("means", means_);
}

}  // namespace dtrain::local_sgd
