#include "framework/strategies/inhad/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/core/check.h"
#include "framework/core/text.h"
#include "framework/strategies/visit.h"

namespace dtrain::inhad {

InhadServer::InhadServer(int server, const ActorSetup& setup, const InhadOptions& options)
    : server_(server),
      placement_(setup.placement),
      shard_(setup.placement.ShardOf(server, setup.size)),
      options_(options),
      scheduler_(server == 0 ? std::make_unique<Scheduler>(setup.placement, options) : nullptr),
      held_(setup.placement.nodes()),
      refresh_(setup.placement.nodes()),
      given_up_(setup.placement.nodes()) {}

std::vector<VectorSpec> InhadServer::Vectors() const {
  std::vector<VectorSpec> vectors = {{"master", VectorRole::kMaster, shard_},
                                     {"sum", VectorRole::kPlain, shard_}};
  for (size_t node = 0; node < held_.size(); ++node) {
    vectors.push_back({fmt::format("held.{}", node), VectorRole::kPlain, shard_});
  }
  return vectors;
}

void InhadServer::OnMessage(ActorId from, const Message& message, Effects& effects) {
  if (message.kind == Close::kKind) {
    DT_CHECK(close_.nodes.empty()) << Describe();
    close_ = Unpack<Close>(message);
    UpdateIfWhole(effects);
  } else if (message.kind == Refresh::kKind) {
    const int node = static_cast<int>(Unpack<Refresh>(message).node);
    if (close_.nodes.empty()) return SendWeights(node, effects);
    refresh_[node] = true;
  } else if (message.kind == GiveUp::kKind) {
    given_up_[Unpack<GiveUp>(message).node] = true;
  } else if (message.kind == Applied::kKind) {
    scheduler_->OnApplied(Unpack<Applied>(message));
    Schedule(effects);
  } else {
    Receive(placement_.NumberOf(from), message, effects);
  }
}

// Handles a message of a node.
void InhadServer::Receive(int node, const Message& message, Effects& effects) {
  if (scheduler_ && scheduler_->GaveUp(node)) return scheduler_->Ignore(message);
  if (message.kind == Grad::kKind) {
    const auto grad = Unpack<Grad>(message);
    if (grad.count > 0) {
      held_[node] = grad.round;
      effects.Take(kHeld + node);
    }
    if (!scheduler_) return UpdateIfWhole(effects);
    scheduler_->OnGrad(node, grad);
  } else if (message.kind == In::kKind) {
    scheduler_->OnIn(node, Unpack<In>(message), effects);
  } else if (message.kind == Fewer::kKind) {
    scheduler_->OnFewer(node, Unpack<Fewer>(message));
  } else {
    scheduler_->OnHave(node, Unpack<Have>(message), effects);
  }
  Schedule(effects);
}

void InhadServer::OnTimer(int timer, Effects& effects) {
  scheduler_->OnTimer(timer, effects);
  Schedule(effects);
}

void InhadServer::OnQuiescent(const QuiescentState& quiescent, Effects& effects) {
  if (!scheduler_ || (!quiescent.last && quiescent.gone.empty())) return;
  scheduler_->GiveUpNodesOf(quiescent.gone, effects);
  if (quiescent.last) scheduler_->Flush();
  Schedule(effects);
}

void InhadServer::Schedule(Effects& effects) {
  do {
    CloseAndRefresh(effects);
    scheduler_->OpenIfDue(effects);
  } while (scheduler_->IsComplete());
}

void InhadServer::CloseAndRefresh(Effects& effects) {
  if (const std::optional<Close> close = scheduler_->TakeClose()) {
    for (int other = 1; other < placement_.servers; ++other) {
      effects.Send(placement_.ServerId(other), Pack(*close));
    }
    close_ = *close;
    // The next PULL is sent before the weights.  Messages between two ranks stay in order, so after
    // the weights it would have to wait for them.
    if (options_.pipelined) scheduler_->OpenIfDue(effects);
    UpdateIfWhole(effects);
  }
  for (const int node : scheduler_->TakeRefreshes()) {
    SendWeights(node, effects);
    for (int other = 1; other < placement_.servers; ++other) {
      effects.Send(placement_.ServerId(other), Pack(Refresh{node}));
    }
  }
}

bool InhadServer::AllHeld() const {
  const std::vector<Close::Sum> sums = close_.Sums();
  return !sums.empty() && std::all_of(sums.begin(), sums.end(), [this](const Close::Sum& sum) {
    return held_[sum.node] == sum.round;
  });
}

void InhadServer::UpdateIfWhole(Effects& effects) {
  if (!AllHeld()) return;
  const Close close = std::exchange(close_, {});
  std::vector<int64_t> gets = std::exchange(refresh_, std::vector<int64_t>(held_.size(), 0));
  bool first = true;
  for (const Close::Sum& sum : close.Sums()) {
    if (std::exchange(first, false)) {
      effects.Take(kSum, kHeld + sum.node);
    } else {
      effects.Add(kSum, kHeld + sum.node);
      effects.Clear(kHeld + sum.node);
    }
    held_[sum.node] = 0;
    gets[sum.node] = true;
  }
  effects.Apply({.gradient = kSum,
                 .gradient_factor = 1.0 / static_cast<double>(close.count),
                 .lr_factor = options_.RateOf(close.count, placement_.workers),
                 .samples = close.samples});
  effects.Clear(kSum);
  ++version_;
  for (int node = 0; node < std::ssize(gets); ++node) {
    const bool to_all = options_.broadcast_all && !close.Excludes(node);
    if (to_all || gets[node] != 0) SendWeights(node, effects);
  }
  if (server_ != 0) effects.Send(placement_.ServerId(0), Pack(Applied{version_}));
}

bool InhadServer::GaveUp(int node) const {
  return scheduler_ ? scheduler_->GaveUp(node) : given_up_[node] != 0;
}

void InhadServer::SendWeights(int node, Effects& effects) {
  if (GaveUp(node)) return;
  ++broadcasts_;
  effects.Send(placement_.NodeId(node), Pack(Weights{version_}), {kMaster});
}

// Sums that arrived too late for their round are kept for the next one.
std::string InhadServer::Holds() const {
  const auto sums = static_cast<int64_t>(held_.size()) - std::count(held_.begin(), held_.end(), 0);
  return sums == 0 ? "" : fmt::format("the sums of {} for the next update", Counted(sums, "node"));
}

void InhadServer::Visit(StateVisitor& visitor) {
  visitor.Int("version", version_);
  VisitFixed(visitor, "held", held_);
  visitor.Int("close_count", close_.count);
  visitor.Int("close_samples", close_.samples);
  visitor.Ints("close_nodes", close_.nodes);
  VisitFixed(visitor, "refresh", refresh_);
  visitor.Int("broadcasts", broadcasts_);
  if (options_.may_fail) VisitFixed(visitor, "given_up", given_up_);
  if (scheduler_) scheduler_->Visit(visitor);
}

std::string InhadServer::Describe() const {
  if (scheduler_) return fmt::format("inhad server 0, Scheduler: {}", scheduler_->Describe());
  std::vector<int64_t> missing(held_.size(), 0);
  for (const Close::Sum& sum : close_.Sums()) {
    if (held_[sum.node] != sum.round) missing[sum.node] = 1;
  }
  return fmt::format("inhad server {}: version {}, waits for the sums of nodes {}", server_,
                     version_, DescribeMembers(missing));
}

void InhadServer::Report(ProtocolReport& report) const {
  if (!scheduler_) return;
  report.Count(kDownTransfers.name, broadcasts_);
  scheduler_->Report(report);
}

}  // namespace dtrain::inhad
