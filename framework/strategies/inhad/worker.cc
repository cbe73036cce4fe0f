#include "framework/strategies/inhad/worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/text.h"
#include "framework/strategies/inhad/messages.h"

namespace dtrain::inhad {
namespace {

constexpr int64_t kUnderWayMax = 2;

}  // namespace

InhadWorker::InhadWorker(ActorId id, const ActorSetup& setup, const InhadOptions& options)
    : id_(id),
      node_(setup.placement.NodeId(setup.placement.node_of[id])),
      size_(setup.size),
      lockstep_(options.lockstep) {}

std::vector<VectorSpec> InhadWorker::Vectors() const {
  const Range whole{0, size_};
  return {{"gradient", VectorRole::kGradient, whole},
          {"weights", VectorRole::kWeights, whole},
          {"arriving", VectorRole::kPlain, whole}};
}

// Is called again after a resume if the run was stopped after OnBegin but before the step started.
void InhadWorker::OnBegin(Effects& effects) {
  if (phase_ == kComputing) return effects.StartStep();
  if (phase_ == kIdle && under_way_ == kUnderWayMax) ++waits_;
  phase_ = kWaiting;
  Advance(effects);
}

void InhadWorker::OnEnd(const StepReport& report, Effects& effects) {
  DT_CHECK(phase_ == kComputing) << Describe();
  phase_ = kIdle;
  last_base_ = base_;
  ++submitted_;
  ++under_way_;
  effects.Send(node_, Pack(Submit{base_, NextBase(), report.samples}), {kGradient});
  effects.EndStep(OutcomeOf(report));
  Advance(effects);
}

void InhadWorker::OnMessage(ActorId, const Message& message, Effects& effects) {
  if (message.kind == Taken::kKind) {
    --under_way_;
    DT_CHECK(under_way_ >= 0) << Describe();
  } else {
    const auto weights = Unpack<Weights>(message);
    DT_CHECK(weights.version > arriving_)
        << "version " << weights.version << " comes late; " << Describe();
    arriving_ = weights.version;
    effects.Take(kArriving);
  }
  Advance(effects);
}

// Returns a lower bound of the version that the next step uses.
int64_t InhadWorker::NextBase() const {
  return std::max(arriving_, lockstep_ ? last_base_ + 1 : base_);
}

bool InhadWorker::MayStart() const {
  return under_way_ < kUnderWayMax && (!lockstep_ || base_ > last_base_);
}

void InhadWorker::Advance(Effects& effects) {
  if (phase_ == kComputing) return;
  if (arriving_ > base_) {
    effects.Take(kWeights, kArriving);
    base_ = arriving_;
  }
  if (phase_ != kWaiting || !MayStart()) return;
  phase_ = kComputing;
  effects.StartStep();
}

void InhadWorker::Visit(StateVisitor& visitor) {
  visitor.Int("phase", phase_);
  visitor.Int("base", base_);
  visitor.Int("arriving", arriving_);
  visitor.Int("submitted", submitted_);
  visitor.Int("under_way", under_way_);
  visitor.Int("last_base", last_base_);
  visitor.Int("waits", waits_);
}

std::string InhadWorker::Describe() const {
  static constexpr const char* kPhases[] = {"idle", "waiting", "computing"};
  std::string why;
  if (phase_ == kWaiting && under_way_ == kUnderWayMax) why = ", two gradients are not taken yet";
  if (phase_ == kWaiting && lockstep_ && base_ <= last_base_) why += ", no newer weights yet";
  return fmt::format("inhad worker {}: {} submitted, {} with version {}{}", id_,
                     Counted(submitted_, "gradient"), kPhases[phase_], base_, why);
}

void InhadWorker::Report(ProtocolReport& report) const { report.Count("slot_waits", waits_); }

}  // namespace dtrain::inhad
