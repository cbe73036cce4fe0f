#include "framework/strategies/ps/ssp_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/check.h"
#include "framework/strategies/visit.h"

namespace dtrain::ps {

SspServer::SspServer(std::string strategy, int server, const ActorSetup& setup,
                     const SspOptions& options)
    : strategy_(std::move(strategy)),
      server_(server),
      shard_(setup.placement.ShardOf(server, setup.size)),
      options_(options),
      admission_(setup.placement.workers, options.bound),
      extra_(setup.placement.workers),
      untold_(setup.placement.workers, kNoStaleness) {}

void SspServer::OnMessage(ActorId worker, const Message& message, Effects& effects) {
  if (message.kind == Push::kKind) {
    OnPush(worker, Unpack<Push>(message), effects);
  } else {
    const auto pull = Unpack<Pull>(message);
    DT_CHECK(pull.clock == admission_.clocks().Finished(worker))
        << "worker " << worker << " pulls at clock " << pull.clock << "; " << Describe();
    SendWeights(admission_.Request(worker), effects);
  }
}

void SspServer::OnPush(int worker, const Push& push, Effects& effects) {
  DT_CHECK(push.clock == admission_.clocks().Finished(worker) + 1)
      << "worker " << worker << " pushes step " << push.clock << "; " << Describe();
  const int64_t staleness = version_ - push.version;
  DT_CHECK(staleness >= 0) << "worker " << worker << " has version " << push.version << " of "
                           << version_;
  DT_CHECK(untold_[worker] == kNoStaleness) << "worker " << worker << " pushed twice";
  untold_[worker] = staleness;
  effects.Apply(
      {.gradient = kArrived, .lr_factor = LearningRateFactor(staleness), .samples = push.samples});
  ++version_;
  SendWeights(Admit(worker, push, effects), effects);
}

// Returns the workers that may start their next step now, in ascending order.
std::vector<int> SspServer::Admit(int worker, const Push& push, Effects& effects) {
  std::vector<int> admitted = admission_.Finish(worker, push.wants_weights != 0);
  if (!dynamic()) return admitted;
  extra_.OnPush(worker, effects.Time());
  // Workers that the bound admits need no extra steps any more.
  for (const int within : admitted) extra_.Forget(within);
  const ClockTable& clocks = admission_.clocks();
  if (admission_.Waits(worker) &&
      extra_.Take(worker, clocks, options_.bound_max - clocks.Lead(worker) + 1)) {
    admission_.LetGo(worker);
    admitted.insert(std::lower_bound(admitted.begin(), admitted.end(), worker), worker);
  }
  return admitted;
}

void SspServer::SendWeights(const std::vector<int>& workers, Effects& effects) {
  for (const int worker : workers) {
    const Weights answer{.version = version_, .staleness = untold_[worker]};
    untold_[worker] = kNoStaleness;
    effects.Send(worker, Pack(answer), {kMaster});
  }
}

double SspServer::LearningRateFactor(int64_t staleness) const {
  const double share = options_.RateOfGradient(admission_.clocks().workers());
  return options_.damping ? share / static_cast<double>(std::max<int64_t>(staleness, 1)) : share;
}

void SspServer::Visit(StateVisitor& visitor) {
  admission_.Visit(visitor);
  visitor.Int("version", version_);
  VisitFixed(visitor, "untold", untold_);
  if (dynamic()) extra_.Visit(visitor);
}

std::string SspServer::Describe() const {
  const std::string up_to = dynamic() ? fmt::format(" to {}", options_.bound_max) : "";
  return fmt::format("{} server {}: {}{}", strategy_, server_, admission_.Describe(), up_to);
}

void SspServer::Report(ProtocolReport& report) const {
  report.clock_lead_max = std::max(report.clock_lead_max, admission_.lead_max());
  if (server_ != 0) return;
  for (const int64_t staleness : untold_) {
    if (staleness != kNoStaleness) report.AddStaleness(staleness);
  }
}

}  // namespace dtrain::ps
