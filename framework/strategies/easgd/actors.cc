#include "framework/strategies/easgd/actors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/core/check.h"

namespace dtrain::easgd {

EasgdWorker::EasgdWorker(ActorId id, const ActorSetup& setup, const EasgdOptions& options)
    : id_(id), placement_(setup.placement), size_(setup.size), options_(options) {}

std::vector<VectorSpec> EasgdWorker::Vectors() const {
  const Range whole{0, size_};
  return {{"gradient", VectorRole::kGradient, whole}, {"weights", VectorRole::kMaster, whole}};
}

void EasgdWorker::OnBegin(Effects& effects) {
  phase_ = kWaiting;
  Advance(effects);
}

// The driver adds the samples of this step to the master's when the step ends.
void EasgdWorker::OnEnd(const StepReport& report, Effects& effects) {
  DT_CHECK(phase_ == kComputing && awaited_ == 0) << Describe();
  phase_ = kIdle;
  ++clock_;
  effects.Apply({.gradient = kGradient, .samples = std::exchange(news_, 0)});
  own_ += report.samples;
  known_ += report.samples;
  if (clock_ % options_.period == 0) Meet(effects);
  effects.EndStep(OutcomeOf(report));
}

void EasgdWorker::OnQuiescent(const QuiescentState& quiescent, Effects& effects) {
  if (quiescent.last && own_ > 0) Meet(effects);
}

void EasgdWorker::Meet(Effects& effects) {
  awaited_ = placement_.servers;
  const Weights weights{std::exchange(own_, 0)};
  for (int server = 0; server < placement_.servers; ++server) {
    effects.Send(placement_.ServerId(server), Pack(weights),
                 {kWeights, placement_.ShardOf(server, size_)});
  }
}

void EasgdWorker::OnMessage(ActorId, const Message& message, Effects& effects) {
  const auto centre = Unpack<Centre>(message);
  DT_CHECK(awaited_ > 0) << "a server answers unasked; " << Describe();
  effects.Blend(kWeights, kArrived, options_.beta / placement_.workers);
  news_ += std::max<int64_t>(centre.samples - known_, 0);
  known_ = std::max(known_, centre.samples);
  --awaited_;
  Advance(effects);
}

void EasgdWorker::Advance(Effects& effects) {
  if (phase_ != kWaiting || awaited_ > 0) return;
  phase_ = kComputing;
  effects.StartStep();
}

void EasgdWorker::Visit(StateVisitor& visitor) {
  visitor.Int("phase", phase_);
  visitor.Int("clock", clock_);
  visitor.Int("awaited", awaited_);
  visitor.Int("own", own_);
  visitor.Int("known", known_);
  visitor.Int("news", news_);
}

std::string EasgdWorker::Describe() const {
  static constexpr const char* kPhases[] = {"idle", "waiting", "computing"};
  const std::string missing =
      awaited_ == 0 ? "" : fmt::format(", no centre yet from {} servers", awaited_);
  return fmt::format("easgd worker {}: clock {}, {}{}", id_, clock_, kPhases[phase_], missing);
}

EasgdServer::EasgdServer(int server, const ActorSetup& setup, const EasgdOptions& options)
    : server_(server),
      shard_(setup.placement.ShardOf(server, setup.size)),
      rate_(options.beta / setup.placement.workers) {}

void EasgdServer::OnMessage(ActorId worker, const Message& message, Effects& effects) {
  ++meetings_;
  samples_ += Unpack<Weights>(message).samples;
  effects.Send(worker, Pack(Centre{samples_}), {kCentre});
  effects.Blend(kCentre, kArrived, rate_);
}

void EasgdServer::Visit(StateVisitor& visitor) {
  visitor.Int("meetings", meetings_);
  visitor.Int("samples", samples_);
}

std::string EasgdServer::Describe() const {
  return fmt::format("easgd server {}: {} meetings", server_, meetings_);
}

// A worker meets all servers together; server 0 counts.
void EasgdServer::Report(ProtocolReport& report) const {
  if (server_ == 0) report.Count("meetings", meetings_);
}

}  // namespace dtrain::easgd
