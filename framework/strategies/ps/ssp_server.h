// SspServer: one shard of a parameter server that applies each gradient when it arrives.
//
//   on Push(w):  weights <- solver step with w's gradient, lr x factor;  version += 1
//                w's clock += 1
//   then every waiting worker whose clock - minimum <= bound gets the weights      (Admission)
//
// With bound 0 no worker starts a step before all have finished the last one (gradients are still
// applied one by one, unlike BSP's sum).  Without a bound it is ASP, in which no worker waits.
//
// DSSP: the fastest worker may continue beyond the bound, up to bound_max, while that makes its wait
// shorter (ExtraSteps).  Each shard decides by the pushes that it gets; a worker continues when all shards
// have admitted it.
//
// Read-my-writes (Ho et al., NIPS 2013, section 3): a push and the request for the next weights are
// one message, or arrive in that order from one worker, so the weights of the answer contain the
// push.
//
// Staleness of a gradient = updates applied between the weights it was computed from and itself.
// It is sent to the worker with its next weights and counted there (the largest of all shards).
// Server 0 counts the staleness values of its own shard that were not sent yet, so at a boundary
// each gradient is counted exactly once.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/placement.h"
#include "framework/strategies/ps/admission.h"
#include "framework/strategies/ps/extra_steps.h"
#include "framework/strategies/ps/messages.h"
#include "framework/strategies/strategy.h"

namespace dtrain::ps {

struct SspOptions {
  int64_t bound = kNoBound;  // steps that a worker may lead the slowest one by
  int64_t bound_max = 0;     // DSSP if larger than `bound`
  bool share = true;         // learning rate / workers, as a mean of gradients would have
  bool damping = false;      // learning rate / staleness

  double RateOfGradient(int workers) const { return share ? 1.0 / workers : 1.0; }
};

class SspServer : public Actor {
 public:
  SspServer(std::string strategy, int server, const ActorSetup& setup, const SspOptions& options);

  std::vector<VectorSpec> Vectors() const override {
    return {{"master", VectorRole::kMaster, shard_}};
  }
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;
  void OnQuiescent(const QuiescentState&, Effects&) override { extra_.OnBoundary(); }

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kMaster };

  bool dynamic() const { return options_.bound_max > options_.bound; }
  void OnPush(int worker, const Push& push, Effects& effects);
  std::vector<int> Admit(int worker, const Push& push, Effects& effects);
  void SendWeights(const std::vector<int>& workers, Effects& effects);
  double LearningRateFactor(int64_t staleness) const;

  const std::string strategy_;
  const int server_;
  const Range shard_;
  const SspOptions options_;
  Admission admission_;
  ExtraSteps extra_;  // used if the bound is dynamic
  int64_t version_ = 0;
  std::vector<int64_t> untold_;  // by worker: staleness of its last push; kNoStaleness once sent
};

}  // namespace dtrain::ps
