#include "framework/strategies/ps/bsp_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/check.h"
#include "framework/strategies/visit.h"

namespace dtrain::ps {

BspServer::BspServer(int server, const ActorSetup& setup)
    : server_(server),
      shard_(setup.placement.ShardOf(server, setup.size)),
      pushes_(setup.placement.workers) {}

std::vector<VectorSpec> BspServer::Vectors() const {
  std::vector<VectorSpec> vectors = {{"master", VectorRole::kMaster, shard_},
                                     {"sum", VectorRole::kPlain, shard_}};
  for (int worker = 0; worker < workers(); ++worker) {
    vectors.push_back({fmt::format("held.{}", worker), VectorRole::kPlain, shard_});
  }
  return vectors;
}

void BspServer::OnMessage(ActorId worker, const Message& message, Effects& effects) {
  const auto push = Unpack<Push>(message);
  DT_CHECK(!IsIn(worker) && push.clock == version_ + 1 && push.version == version_)
      << "worker " << worker << " pushes step " << push.clock << "; " << Describe();
  pushes_[worker] = push;
  if (worker != added_) {
    effects.Take(kHeld + worker);
    return;
  }
  AddNext(kArrived, effects);
  while (added_ < workers() && IsIn(static_cast<int>(added_))) {
    AddNext(kHeld + static_cast<VectorId>(added_), effects);
  }
  if (added_ == workers()) EndRound(effects);
}

void BspServer::AddNext(VectorId gradient, Effects& effects) {
  if (added_ == 0) {
    effects.Take(kSum, gradient);
  } else {
    effects.Add(kSum, gradient);
    if (gradient != kArrived) effects.Clear(gradient);
  }
  ++added_;
}

void BspServer::EndRound(Effects& effects) {
  Weights answer{.version = ++version_, .staleness = 0};
  for (const Push& push : pushes_) {
    answer.samples += push.samples;
    answer.loss_sum += push.loss_sum;
    answer.stop |= push.stop;
  }
  effects.Apply({.gradient = kSum, .samples = answer.samples});
  effects.Clear(kSum);
  added_ = 0;
  for (int worker = 0; worker < workers(); ++worker) {
    effects.Send(worker, Pack(answer), {kMaster});
  }
}

void BspServer::Visit(StateVisitor& visitor) {
  visitor.Int("version", version_);
  visitor.Int("added", added_);
  for (Push& push : pushes_) VisitMessage(visitor, "push", push);
}

std::string BspServer::Describe() const {
  std::vector<int64_t> missing;
  for (int worker = 0; worker < workers(); ++worker) missing.push_back(IsIn(worker) ? 0 : 1);
  return fmt::format("ps_bsp server {}: round {}, no gradient yet from workers {}", server_,
                     version_ + 1, DescribeMembers(missing));
}

// No worker starts a step before all have finished the last one, so the lead is 0.
void BspServer::Report(ProtocolReport& report) const {
  report.clock_lead_max = std::max<int64_t>(report.clock_lead_max, 0);
}

}  // namespace dtrain::ps
