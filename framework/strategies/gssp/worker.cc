#include "framework/strategies/gssp/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/core/check.h"
#include "framework/strategies/gssp/messages.h"

namespace dtrain::gssp {
namespace {

constexpr int64_t kStepsNotMeasured = 5;  // of the run's first: caches are cold
constexpr size_t kStepsMeasured = 20;

}  // namespace

GsspWorker::GsspWorker(ActorId id, const ActorSetup& setup, int server, bool measured)
    : id_(id),
      placement_(setup.placement),
      size_(setup.size),
      measured_(measured),
      server_(server) {}

std::vector<VectorSpec> GsspWorker::Vectors() const {
  const Range whole{0, size_};
  return {{"gradient", VectorRole::kGradient, whole},
          {"weights", VectorRole::kWeights, whole},
          {"arriving", VectorRole::kPlain, whole}};
}

// Comes again after a resume, when the run was stopped before a step that it had begun.
void GsspWorker::OnBegin(Effects& effects) {
  if (phase_ == kComputing) return effects.StartStep();
  phase_ = kWaiting;
  Advance(effects);
}

void GsspWorker::OnEnd(const StepReport& report, Effects& effects) {
  DT_CHECK(phase_ == kComputing) << Describe();
  phase_ = kIdle;
  ++clock_;
  awaited_ = 1;
  effects.Send(placement_.ServerId(static_cast<int>(server_)), Pack(Push{report.samples}),
               {kGradient});
  effects.EndStep(OutcomeOf(report));
  if (!measured_) return;
  pushed_at_ = effects.Time();
  if (clock_ <= kStepsNotMeasured) return;
  if (own_.size() == kStepsMeasured) own_.erase(own_.begin());
  own_.push_back(report.compute + transfers_);
}

void GsspWorker::OnMessage(ActorId, const Message& message, Effects& effects) {
  if (message.kind == Regroup::kKind) {
    server_ = Unpack<Regroup>(message).server_of[id_];
    return;
  }
  const auto weights = Unpack<Weights>(message);
  DT_CHECK(awaited_ != 0) << "weights come unasked; " << Describe();
  awaited_ = 0;
  arrived_ = 1;
  effects.Take(kArriving);
  // The way there, and the way back; between them the request may have been kept.
  if (measured_ && weights.held != kUnknown) {
    transfers_ = std::max<int64_t>(0, effects.Time() - pushed_at_ - weights.held);
  }
  Advance(effects);
}

void GsspWorker::OnQuiet(const Quiet& quiet, Effects& effects) {
  if (!measured_ || own_.empty() || quiet.last) return;
  effects.Send(placement_.CoordinatorId(), Pack(Stats{MedianOwn(), quiet.epochs}));
}

int64_t GsspWorker::MedianOwn() const {
  std::vector<int64_t> sorted = own_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return std::max<int64_t>(*middle, 1);
}

void GsspWorker::Advance(Effects& effects) {
  if (phase_ == kComputing || awaited_ != 0) return;
  if (std::exchange(arrived_, 0) != 0) effects.Take(kWeights, kArriving);
  if (phase_ != kWaiting) return;
  phase_ = kComputing;
  effects.StartStep();
}

void GsspWorker::Visit(StateVisitor& visitor) {
  visitor.Int("phase", phase_);
  visitor.Int("server", server_);
  visitor.Int("clock", clock_);
  visitor.Int("awaited", awaited_);
  visitor.Int("arrived", arrived_);
  visitor.Int("pushed_at", pushed_at_);
  visitor.Int("transfers", transfers_);
  visitor.Ints("own", own_);
}

std::string GsspWorker::Describe() const {
  static constexpr const char* kPhases[] = {"idle", "waiting", "computing"};
  return fmt::format("gssp worker {} of group {}: clock {}, {}{}", id_, server_, clock_,
                     kPhases[phase_], awaited_ != 0 ? ", no weights yet" : "");
}

void GsspWorker::Report(ProtocolReport& report) const {
  report.up_transfers += clock_;
  report.group = server_;
}

}  // namespace dtrain::gssp
