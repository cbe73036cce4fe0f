// BspServer: one shard of a parameter server whose workers step together.
//
//   on Push(w) of round v:  sum <- sum + w's gradient, in worker order
//   when all are in:        weights <- solver step with sum;  version += 1;  all get the weights
//
// The sum is ((g0 + g1) + g2) + ... for any order of arrival, so that every number of shards gives
// the same bits as `allreduce`.  A gradient that arrives before its turn is held, and one that
// arrives in its turn is added at once.  So the work is spread over the round, and only early
// gradients need memory.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/ps/messages.h"
#include "framework/strategies/strategy.h"

namespace dtrain::ps {

class BspServer : public Actor {
 public:
  BspServer(int server, const ActorSetup& setup);

  std::vector<VectorSpec> Vectors() const override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kMaster, kSum, kHeld };  // kHeld + w: worker w's gradient

  int workers() const { return static_cast<int>(pushes_.size()); }
  bool IsIn(int worker) const { return pushes_[worker].clock > version_; }
  void AddNext(VectorId gradient, Effects& effects);
  void EndRound(Effects& effects);

  const int server_;
  const Range shard_;
  int64_t version_ = 0;       // number of rounds, each of which makes one update
  int64_t added_ = 0;         // the gradients of workers 0..added - 1 are in the sum
  std::vector<Push> pushes_;  // by worker: its last Push, of this round or the one before
};

}  // namespace dtrain::ps
