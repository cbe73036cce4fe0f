#include "framework/strategies/gssp/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/state_record.h"
#include "framework/strategies/gssp/density_policy.h"
#include "framework/strategies/gssp/messages.h"
#include "framework/strategies/visit.h"

namespace dtrain::gssp {
namespace {

constexpr int64_t kStepsNotMeasured = 5;  // the first steps of the run, in which caches are cold
constexpr size_t kStepsMeasured = 20;

void Keep(int64_t value, std::vector<int64_t>& last_ones) {
  if (last_ones.size() == kStepsMeasured) last_ones.erase(last_ones.begin());
  last_ones.push_back(value);
}

int64_t MedianOf(std::vector<int64_t> values) {
  if (values.empty()) return kUnknown;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

GsspWorker::GsspWorker(ActorId id, const ActorSetup& setup, std::vector<int64_t> server_of)
    : id_(id),
      placement_(setup.placement),
      size_(setup.size),
      compresses_(setup.compress.on()),
      flushes_(setup.compress.flush_epochs),
      server_of_(std::move(server_of)),
      density_(kDensityAtStart) {}

std::vector<VectorSpec> GsspWorker::Vectors() const {
  const Range whole{0, size_};
  std::vector<VectorSpec> vectors = {{"gradient", VectorRole::kGradient, whole},
                                     {"weights", VectorRole::kWeights, whole},
                                     {"arriving", VectorRole::kPlain, whole}};
  if (compresses_) {
    vectors.push_back({kResidualName, VectorRole::kResidual, whole});
    vectors.push_back({"out", VectorRole::kPlain, whole});
  }
  return vectors;
}

// Is called again after a resume if the run was stopped after OnBegin but before the step started.
void GsspWorker::OnBegin(Effects& effects) {
  if (phase_ == kComputing) return effects.StartStep();
  phase_ = kWaiting;
  Advance(effects);
}

void GsspWorker::OnEnd(const StepReport& report, Effects& effects) {
  DT_CHECK(phase_ == kComputing) << Describe();
  phase_ = kIdle;
  ++clock_;
  awaited_ = true;
  SendGradient(report.samples, effects);
  effects.EndStep(OutcomeOf(report));
  pushed_at_ = effects.Time();
  if (clock_ > kStepsNotMeasured) Keep(report.compute, compute_);
}

void GsspWorker::SendGradient(int64_t samples, Effects& effects) {
  const ActorId server = MyServer();
  if (!compresses_) return effects.Send(server, Pack(Push{samples}), {kGradient});
  effects.Add(kResidual, kGradient);
  effects.Compress(kOut, kResidual, density_);
  effects.Send(server, Pack(Push{samples}), {kOut});
  effects.Clear(kOut);
}

void GsspWorker::OnMessage(ActorId, const Message& message, Effects& effects) {
  if (message.kind == Regroup::kKind) {
    server_of_ = Unpack<Regroup>(message).server_of;
    return;
  }
  if (message.kind == Probe::kKind) {
    return effects.Send(MyServer(), Pack(Probe{}), {kWeights});
  }
  if (message.kind == Density::kKind) {
    const double density = Unpack<Density>(message).density;
    // The measured times are those of another amount of data.
    if (std::exchange(density_, density) != density) transfers_.clear();
    return;
  }
  const auto weights = Unpack<Weights>(message);
  DT_CHECK(awaited_ != 0) << "weights come unasked; " << Describe();
  awaited_ = false;
  arrived_ = true;
  effects.Take(kArriving);
  // The round trip includes the time that the server held the request, which is subtracted.
  const int64_t round_trip = effects.Time() - pushed_at_;
  if (weights.held != kUnknown && clock_ > kStepsNotMeasured) {
    Keep(std::max<int64_t>(0, round_trip - weights.held), transfers_);
  }
  Advance(effects);
}

void GsspWorker::OnQuiescent(const QuiescentState& quiescent, Effects& effects) {
  const bool epoch_ends = std::exchange(epochs_, quiescent.epochs) != quiescent.epochs;
  if (compresses_ && (quiescent.last || (flushes_ && epoch_ends))) {
    for (const int64_t server : std::set(server_of_.begin(), server_of_.end())) {
      effects.Send(placement_.ServerId(static_cast<int>(server)), Pack(Flush{}), {kResidual});
      ++flushed_;
    }
    effects.Clear(kResidual);
  }
  if (quiescent.last) return;
  const int64_t compute = compute_.empty() ? kUnknown : std::max<int64_t>(MedianOf(compute_), 1);
  effects.Send(placement_.CoordinatorId(),
               Pack(Stats{compute, MedianOf(transfers_), quiescent.steps, quiescent.epochs}));
}

void GsspWorker::Advance(Effects& effects) {
  if (phase_ == kComputing || awaited_ != 0) return;
  if (std::exchange(arrived_, false)) effects.Take(kWeights, kArriving);
  if (phase_ != kWaiting) return;
  phase_ = kComputing;
  effects.StartStep();
}

void GsspWorker::Visit(StateVisitor& visitor) {
  visitor.Int("phase", phase_);
  VisitFixed(visitor, "server_of", server_of_);
  visitor.Int("clock", clock_);
  visitor.Int("awaited", awaited_);
  visitor.Int("arrived", arrived_);
  visitor.Int("pushed_at", pushed_at_);
  visitor.Int("epochs", epochs_);
  visitor.Int("flushed", flushed_);
  VisitDouble(visitor, "density", density_);
  visitor.Ints("compute", compute_);
  visitor.Ints("transfers", transfers_);
}

std::string GsspWorker::Describe() const {
  static constexpr const char* kPhases[] = {"idle", "waiting", "computing"};
  return fmt::format("gssp worker {} of group {}: clock {}, {}{}", id_, server_of_[id_], clock_,
                     kPhases[phase_], awaited_ != 0 ? ", no weights yet" : "");
}

void GsspWorker::Report(ProtocolReport& report) const {
  report.Count(kUpTransfers.name, clock_ + flushed_);
  report.group = server_of_[id_];
}

}  // namespace dtrain::gssp
