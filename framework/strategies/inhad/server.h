// InhadServer: one shard of InHAD's parameter server.  It holds the sums that the nodes send and
// makes the updates that the Scheduler decides on.  Server 0 is the Scheduler as well.
//
//   on Grad(j):   held.j = the server's range of node j's sum
//   on Close:     when all of its sums are there: sum = held.j + ..., in node order
//                 weights <- solver step with sum / C (and, with `scale: share`, lr x C n / workers);
//                 version += 1;  the nodes get the weights
//
// C is the number of gradients in the sums, so the mean is that of all gradients, not of the nodes'
// means.  Sums are added in node order, so runs with the same rounds (lockstep) have the same bits.
// The factors alpha(tau) / alpha0 of inhad.md 2 are in the sums already; alpha0 is the learning
// rate of the schedule.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/inhad/messages.h"
#include "framework/strategies/inhad/options.h"
#include "framework/strategies/inhad/scheduler.h"
#include "framework/strategies/strategy.h"

namespace dtrain::inhad {

class InhadServer : public Actor {
 public:
  InhadServer(int server, const ActorSetup& setup, const InhadOptions& options);

  std::vector<VectorSpec> Vectors() const override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;
  void OnTimer(int timer, Effects& effects) override;
  void OnQuiescent(const QuiescentState& quiescent, Effects& effects) override;

  std::string Holds() const override;
  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kMaster, kSum, kHeld };  // kHeld + j: node j's sum

  void Receive(int node, const Message& message, Effects& effects);
  bool GaveUp(int node) const;
  void Schedule(Effects& effects);
  void CloseAndRefresh(Effects& effects);
  bool AllHeld() const;
  void UpdateIfWhole(Effects& effects);
  void SendWeights(int node, Effects& effects);

  const int server_;
  const Placement placement_;
  const Range shard_;
  const InhadOptions options_;
  std::unique_ptr<Scheduler> scheduler_;  // null except on server 0

  int64_t version_ = 0;
  std::vector<int64_t> held_;  // by node: the round of its sum; 0 if there is none
  // Holds the update to be made next; it is without nodes if there is none.
  Close close_;
  std::vector<int64_t> refresh_;   // by node: 1 if it gets the weights after that update
  std::vector<int64_t> given_up_;  // by node: 1 after a GiveUp of the Scheduler; unused on server 0
  int64_t broadcasts_ = 0;         // weights sent to nodes
};

}  // namespace dtrain::inhad
