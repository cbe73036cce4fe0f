#include "framework/strategies/ps/ps_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/core/check.h"
#include "framework/strategies/visit.h"

namespace dtrain::ps {
namespace {

constexpr int64_t kAwaited = -1;

}  // namespace

PsWorker::PsWorker(std::string strategy, ActorId id, const ActorSetup& setup,
                   const PsWorkerOptions& options)
    : strategy_(std::move(strategy)),
      id_(id),
      placement_(setup.placement),
      size_(setup.size),
      options_(options),
      compresses_(setup.compress.on()),
      density_(setup.compress.density),
      versions_(setup.placement.servers),
      arriving_(setup.placement.servers) {}

std::vector<VectorSpec> PsWorker::Vectors() const {
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

// Is called again after a resume if the run was stopped after OnBegin: while the step waited for
// weights, or when it was admitted but held by the boundary (then the phase is kComputing).
void PsWorker::OnBegin(Effects& effects) {
  if (phase_ == kComputing) return effects.StartStep();
  phase_ = kWaiting;
  Advance(effects);
}

void PsWorker::OnEnd(const StepReport& report, Effects& effects) {
  DT_CHECK(phase_ == kComputing) << Describe();
  phase_ = kIdle;
  ++clock_;
  if (compresses_) {
    effects.Add(kResidual, kGradient);
    effects.Compress(kOut, kResidual, density_);
  }
  const VectorId pushed = compresses_ ? kOut : kGradient;
  for (int server = 0; server < placement_.servers; ++server) {
    const Push push{.clock = clock_,
                    .version = versions_[server],
                    .samples = report.samples,
                    .loss_sum = report.loss_sum,
                    .stop = report.stop,
                    .wants_weights = !options_.prefetch};
    effects.Send(placement_.ServerId(server), Pack(push),
                 {pushed, placement_.ShardOf(server, size_)});
  }
  if (compresses_) effects.Clear(kOut);
  if (!options_.prefetch) arriving_.assign(arriving_.size(), kAwaited);
  if (!options_.synchronous) effects.EndStep(OutcomeOf(report));
  Advance(effects);
}

void PsWorker::OnMessage(ActorId from, const Message& message, Effects& effects) {
  const auto answer = Unpack<Weights>(message);
  Note(from, answer);
  effects.Take(kArriving);
  if (!AllAnswered()) return;
  Advance(effects);
  if (options_.synchronous) {
    effects.EndStep({answer.samples, answer.loss_sum, answer.stop != 0});
  }
}

// The server has reported the staleness of the last gradient and does not count it any more, so
// this worker counts it even if it is dead.
void PsWorker::OnLostMessage(ActorId from, const Message& message) {
  Note(from, Unpack<Weights>(message));
}

void PsWorker::Note(ActorId from, const Weights& answer) {
  const int server = placement_.ServerOf(from);
  DT_CHECK(arriving_[server] == kAwaited)
      << "server " << server << " answers unasked; " << Describe();
  arriving_[server] = answer.version;
  staleness_ = std::max(staleness_, answer.staleness);
  if (!AllAnswered() || staleness_ == kNoStaleness) return;
  counted_.AddStaleness(std::exchange(staleness_, kNoStaleness));
}

bool PsWorker::AllAnswered() const {
  return std::find(arriving_.begin(), arriving_.end(), kAwaited) == arriving_.end();
}

// Does what is possible now: the arrived weights become the current ones, and the next step starts.
void PsWorker::Advance(Effects& effects) {
  if (phase_ == kComputing || !AllAnswered()) return;
  if (versions_ != arriving_) {  // equal versions: the worker has these weights already
    effects.Take(kWeights, kArriving);
    versions_ = arriving_;
  }
  if (phase_ == kWaiting) Start(effects);
}

void PsWorker::Start(Effects& effects) {
  phase_ = kComputing;
  effects.StartStep();
  if (!options_.prefetch) return;
  arriving_.assign(arriving_.size(), kAwaited);
  for (int server = 0; server < placement_.servers; ++server) {
    effects.Send(placement_.ServerId(server), Pack(Pull{clock_}));
  }
}

void PsWorker::Visit(StateVisitor& visitor) {
  visitor.Int("phase", phase_);
  visitor.Int("clock", clock_);
  VisitFixed(visitor, "versions", versions_);
  VisitFixed(visitor, "arriving", arriving_);
  visitor.Int("staleness", staleness_);
  visitor.Ints("staleness_counts", counted_.staleness);
}

std::string PsWorker::Describe() const {
  static constexpr const char* kPhases[] = {"idle", "waiting", "computing"};
  std::vector<int64_t> awaited;
  for (const int64_t version : arriving_) awaited.push_back(version == kAwaited ? 1 : 0);
  const std::string missing =
      AllAnswered() ? "" : ", no weights yet from servers " + DescribeMembers(awaited);
  return fmt::format("{} worker {}: clock {}, {}{}", strategy_, id_, clock_, kPhases[phase_],
                     missing);
}

// Server 0 counts a staleness until it has reported it to the worker.  Each shard decides on its
// own when it answers, so server 0 may have answered when another has not; then the worker counts
// it here.
void PsWorker::Report(ProtocolReport& report) const {
  report.Add(counted_);
  report.Count(kUpTransfers.name, clock_);
  // Each step requests weights once: with its gradient or, with prefetch, when it starts.
  const int64_t asked = clock_ + (options_.prefetch && phase_ == kComputing ? 1 : 0);
  report.Count(kDownTransfers.name, asked - (AllAnswered() ? 0 : 1));
  const bool answered = arriving_[0] != kAwaited && staleness_ != kNoStaleness;
  if (answered && !AllAnswered()) report.AddStaleness(staleness_);
}

}  // namespace dtrain::ps
