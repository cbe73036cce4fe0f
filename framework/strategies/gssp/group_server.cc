#include "framework/strategies/gssp/group_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/text.h"
#include "framework/strategies/visit.h"

namespace dtrain::gssp {

GroupServer::GroupServer(int server, const ActorSetup& setup, const GsspOptions& options,
                         std::vector<int64_t> server_of)
    : server_(server),
      placement_(setup.placement),
      size_(setup.size),
      options_(options),
      server_of_(std::move(server_of)),
      admission_(workers(), options.inside == Inside::kBsp ? ps::kNoBound : options.bound),
      has_(workers()),
      pushed_at_(workers()),
      held_(workers()),
      alone_(workers(), kUnknown) {
  for (int worker = 0; worker < workers(); ++worker) {
    if (!IsMember(worker)) admission_.Leave(worker);
  }
}

std::vector<VectorSpec> GroupServer::Vectors() const {
  const Range whole{0, size_};
  std::vector<VectorSpec> vectors = {{"master", VectorRole::kMaster, whole}};
  if (!Averages()) vectors.push_back({"acc", VectorRole::kPlain, whole});
  if (options_.inside == Inside::kSsp) return vectors;
  for (int worker = 0; worker < workers(); ++worker) {
    vectors.push_back({fmt::format("held.{}", worker), VectorRole::kPlain, whole});
  }
  return vectors;
}

int64_t GroupServer::Members() const {
  return std::count(server_of_.begin(), server_of_.end(), server_);
}

bool GroupServer::IsActive(int server) const {
  return std::find(server_of_.begin(), server_of_.end(), server) != server_of_.end();
}

double GroupServer::MasterShare() const {
  return static_cast<double>(Members()) / static_cast<double>(workers());
}

void GroupServer::OnMessage(ActorId from, const Message& message, Effects& effects) {
  switch (message.kind) {
    case Push::kKind:
      return OnPush(from, Unpack<Push>(message), effects);
    case GroupSync::kKind:
      return OnGroupSync(Unpack<GroupSync>(message), effects);
    case Replica::kKind:
      return OnReplica(Unpack<Replica>(message), effects);
    case Flush::kKind:
      return OnFlush(effects);
    case Probe::kKind:
      return OnProbe(from, effects);
    case Regroup::kKind:
      return OnRegroup(Unpack<Regroup>(message), effects);
    default:
      return OnHandover(Unpack<Handover>(message), effects);
  }
}

// ------------------------------------------------------------------ gradients

void GroupServer::OnPush(int worker, const Push& push, Effects& effects) {
  DT_CHECK(IsMember(worker)) << "worker " << worker << " pushes to another group's server; "
                             << Describe();
  DT_CHECK(has_[worker] <= version_) << "worker " << worker << " has version " << has_[worker];
  counted_.AddStaleness(version_ - has_[worker]);
  pushed_at_[worker] = effects.Time();
  if (options_.inside == Inside::kBsp) {
    effects.Take(Held(worker));
    held_[worker] = push.samples;
    const auto in = workers() - std::count(held_.begin(), held_.end(), 0);
    if (in == Members()) EndRound(effects);
    return;
  }
  Step(kArrived, 1, push.samples, effects);
  SendGroupSyncIfDue(effects);
  SendWeights(admission_.Finish(worker, /*wants_next=*/true), effects);
}

// Returns the update for a sum of `count` gradients, of `all` workers: their mean with the learning
// rate times count / all or, with scale_gradient, the sum divided by `all` with the whole learning
// rate.
Update GroupServer::UpdateOf(VectorId sum, int64_t count, int64_t all, int64_t samples) const {
  const auto q = static_cast<double>(count), w = static_cast<double>(all);
  if (options_.scale_gradient) {
    return {.gradient = sum, .gradient_factor = 1 / w, .samples = samples};
  }
  return {.gradient = sum, .gradient_factor = 1 / q, .lr_factor = q / w, .samples = samples};
}

// A solver step with the sum of `count` gradients of the group.
void GroupServer::Step(VectorId gradients, int64_t count, int64_t samples, Effects& effects) {
  // With averaging, this server does not get the samples of other groups, but the learning rate
  // follows those of all groups, so its own are scaled up.
  effects.Apply(Averages() ? UpdateOf(gradients, count, Members(), samples * workers() / Members())
                           : UpdateOf(gradients, count, workers(), samples));
  ++version_;
  if (!HasOthers()) return;  // no other group needs the gradient
  if (!Averages()) effects.Add(kAcc, gradients);
  acc_gradients_ += count;
  acc_samples_ += samples;
}

// Makes a step with the gradients that are held for this round.  With `inside: ssp` none is ever
// held.
void GroupServer::EndRound(Effects& effects) {
  std::vector<int> in;
  int64_t samples = 0;
  for (int worker = 0; worker < workers(); ++worker) {
    if (held_[worker] == 0) continue;
    if (!in.empty()) {  // adds in worker order, into the first one's vector
      effects.Add(Held(in.front()), Held(worker));
      effects.Clear(Held(worker));
    }
    in.push_back(worker);
    samples += std::exchange(held_[worker], 0);
  }
  if (in.empty()) return;
  Step(Held(in.front()), static_cast<int64_t>(in.size()), samples, effects);
  effects.Clear(Held(in.front()));
  SendGroupSyncIfDue(effects);
  for (const int worker : in) SendWeights(admission_.Finish(worker, true), effects);
}

void GroupServer::SendGroupSyncIfDue(Effects& effects) {
  const int64_t every = options_.exchange_every > 0 ? options_.exchange_every : Members();
  if (acc_gradients_ >= every) SendGroupSync(effects);
}

void GroupServer::SendGroupSync(Effects& effects) {
  if (acc_gradients_ == 0) return;
  ++exchanges_;
  const GroupSync sync{std::exchange(acc_gradients_, 0), std::exchange(acc_samples_, 0)};
  const Message message = Averages() ? Pack(Replica{Members()}) : Pack(sync);
  for (const int64_t other : std::set(server_of_.begin(), server_of_.end())) {
    if (other == server_) continue;
    effects.Send(placement_.ServerId(static_cast<int>(other)), message,
                 {Averages() ? kMaster : kAcc});
  }
  if (!Averages()) effects.Clear(kAcc);
}

void GroupServer::OnGroupSync(const GroupSync& sync, Effects& effects) {
  effects.Apply(UpdateOf(kArrived, sync.gradients, workers(), sync.samples));
  ++version_;
}

void GroupServer::OnReplica(const Replica& replica, Effects& effects) {
  const double share = static_cast<double>(replica.members) / static_cast<double>(workers());
  effects.Blend(kMaster, kArrived, share);
  ++version_;
}

// Applies a worker's residual, whose gradients were counted already.  The worker sends it to every
// server, so it is not added to acc.
void GroupServer::OnFlush(Effects& effects) {
  effects.Apply(UpdateOf(kArrived, 1, workers(), /*samples=*/0));
  ++version_;
}

void GroupServer::SendWeights(const std::vector<int>& admitted, Effects& effects) {
  answers_ += static_cast<int64_t>(admitted.size());
  for (const int worker : admitted) {
    has_[worker] = version_;
    const int64_t pushed_at = pushed_at_[worker];
    const int64_t held = pushed_at > 0 ? effects.Time() - pushed_at : kUnknown;
    effects.Send(worker, Pack(Weights{held}), {kMaster});
  }
}

// ------------------------------------------------------------------ at a boundary

// At the end of the run an incomplete acc is sent, so that every server gets every gradient.
void GroupServer::OnQuiescent(const QuiescentState& quiescent, Effects& effects) {
  if (!quiescent.last) return;
  EndRound(effects);
  SendGroupSync(effects);
}

void GroupServer::OnProbe(ActorId from, Effects& effects) {
  if (from != placement_.CoordinatorId()) {
    DT_CHECK(from == probed_) << "worker " << from << " answers a probe of worker " << probed_;
    alone_[probed_++] = effects.Time() - probed_at_;
  }
  while (probed_ < workers() && !IsMember(static_cast<int>(probed_))) ++probed_;
  if (probed_ == workers()) return effects.Send(placement_.CoordinatorId(), Pack(Probed{alone_}));
  probed_at_ = effects.Time();
  effects.Send(static_cast<ActorId>(probed_), Pack(Probe{}), {kMaster});
}

// For each worker that leaves, sends a Handover to its new server.  A server that is left without
// workers sends its acc to the other groups now, since it will get no more pushes.
void GroupServer::OnRegroup(const Regroup& regroup, Effects& effects) {
  DT_CHECK(regroup.number == regroup_ + 1) << Describe();
  const std::vector<int64_t> before = server_of_;
  // An incomplete round ends here, since its workers may belong to different groups from now on.
  EndRound(effects);
  const bool emptied = std::find(regroup.server_of.begin(), regroup.server_of.end(), server_) ==
                       regroup.server_of.end();
  if (emptied) SendGroupSync(effects);
  regroup_ = regroup.number;
  server_of_ = regroup.server_of;
  if (!HasOthers() && acc_gradients_ > 0) {  // this is the only group left: no one needs acc
    if (!Averages()) effects.Clear(kAcc);
    acc_gradients_ = acc_samples_ = 0;
  }
  for (int worker = 0; worker < workers(); ++worker) {
    if (before[worker] != server_ || IsMember(worker)) continue;
    const bool waiting = admission_.Waits(worker);
    const std::vector<int> admitted = admission_.Leave(worker);
    effects.Send(placement_.ServerId(static_cast<int>(server_of_[worker])),
                 Pack(Handover{regroup_, worker, version_ - has_[worker], waiting}));
    SendWeights(admitted, effects);
  }
  for (size_t i = 0; i < early_.size(); i += 3) {
    TakeOver({regroup_, early_[i], early_[i + 1], early_[i + 2]}, effects);
  }
  early_.clear();
}

void GroupServer::OnHandover(const Handover& handover, Effects& effects) {
  if (handover.number == regroup_) return TakeOver(handover, effects);
  early_.insert(early_.end(), {handover.worker, handover.behind, handover.waiting});
}

void GroupServer::TakeOver(const Handover& handover, Effects& effects) {
  const int worker = static_cast<int>(handover.worker);
  DT_CHECK(IsMember(worker)) << Describe();
  admission_.Join(worker);
  has_[worker] = version_ - handover.behind;
  pushed_at_[worker] = 0;
  if (handover.waiting != 0) SendWeights(admission_.Request(worker), effects);
}

// ------------------------------------------------------------------ state and reports

// With averaging, gradients since the last exchange are in the weights, and so in the model at a
// boundary.
std::string GroupServer::Holds() const {
  const auto waiting =
      static_cast<int64_t>(held_.size()) - std::count(held_.begin(), held_.end(), 0);
  if (waiting > 0) {
    return fmt::format("{} of a step that is not whole", Counted(waiting, "gradient"));
  }
  if (acc_gradients_ == 0 || Averages()) return "";
  return fmt::format("{} that the other groups have not had", Counted(acc_gradients_, "gradient"));
}

void GroupServer::Visit(StateVisitor& visitor) {
  visitor.Int("version", version_);
  VisitFixed(visitor, "server_of", server_of_);
  visitor.Int("regroup", regroup_);
  admission_.Visit(visitor);
  VisitFixed(visitor, "has", has_);
  VisitFixed(visitor, "pushed_at", pushed_at_);
  visitor.Ints("early", early_);
  visitor.Int("acc_gradients", acc_gradients_);
  visitor.Int("acc_samples", acc_samples_);
  VisitFixed(visitor, "held", held_);
  visitor.Int("probed", probed_);
  visitor.Int("probed_at", probed_at_);
  VisitFixed(visitor, "alone", alone_);
  visitor.Int("exchanges", exchanges_);
  visitor.Int("answers", answers_);
  visitor.Ints("staleness_counts", counted_.staleness);
}

std::string GroupServer::Describe() const {
  if (!IsActive(server_)) return fmt::format("gssp server {}: no group", server_);
  return fmt::format("gssp server {}: version {}, {}", server_, version_, admission_.Describe());
}

void GroupServer::Report(ProtocolReport& report) const {
  report.Add(counted_);
  report.clock_lead_max = std::max(report.clock_lead_max, admission_.lead_max());
  report.Count("exchanges", exchanges_);
  report.Count(kDownTransfers.name, answers_);
  if (!IsActive(server_)) report.idle_servers.push_back(server_);
}

}  // namespace dtrain::gssp
