// GroupServer: the server of one group of GSSP's workers.  It holds the whole model, with a solver
// of its own, and so do the others: they exchange what their groups have learned without waiting.
//
//   on Push(w):      weights <- solver step with w's gradient;  acc += it
//                    after K gradients: acc to every other group's server;  acc = 0
//                    then as SspServer, among the workers of the group            (ps::Admission)
//   on Exchange(h):  weights <- solver step with the sum of h's gradients
//
// So each gradient enters each server's weights once, at 1/W of the rate, W the workers of all
// groups.  With plain SGD at a constant rate the servers are equal, up to rounding, once nothing is
// in flight and acc is flushed; with momentum they are not, since a sum passes through it as one
// gradient (gssp.md 3.3).
//
// `inside: bsp` waits for all workers of the group and takes one step with their mean; a sum goes
// out at the end of a round, when there are K gradients or more.  `exchange: averaging` sends the
// weights instead (Replica), and a server moves towards what arrives by that group's share of the
// workers; its own gradients then count among its group only, and there is no acc.
//
// Before workers are grouped by speed it probes, when the coordinator asks for it, how long a step's
// transfers take for each worker of its group with nobody beside it: one after the other, at all
// servers at once.
//
// Staleness of a gradient = updates between the weights it was computed from and itself, an exchange
// counting as one.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/gssp/messages.h"
#include "framework/strategies/gssp/options.h"
#include "framework/strategies/placement.h"
#include "framework/strategies/ps/admission.h"
#include "framework/strategies/strategy.h"

namespace dtrain::gssp {

class GroupServer : public Actor {
 public:
  // `server_of`: by worker, to begin with.
  GroupServer(int server, const ActorSetup& setup, const GsspOptions& options,
              std::vector<int64_t> server_of);

  std::vector<VectorSpec> Vectors() const override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;
  void OnQuiescent(const QuiescentState& quiescent, Effects& effects) override;
  double MasterShare() const override;

  std::string Holds() const override;
  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kMaster, kAcc };  // no acc where weights are averaged
  // Behind them: worker w's gradient (inside: bsp).
  VectorId Held(int worker) const { return (Averages() ? kMaster : kAcc) + 1 + worker; }

  bool Averages() const { return options_.between == Between::kAveraging; }

  int workers() const { return static_cast<int>(server_of_.size()); }
  int64_t Members() const;
  bool IsMember(int worker) const { return server_of_[worker] == server_; }
  bool IsActive(int server) const;
  bool HasOthers() const { return Members() < workers(); }  // workers of other groups

  void OnPush(int worker, const Push& push, Effects& effects);
  Update UpdateOf(VectorId sum, int64_t count, int64_t all, int64_t samples) const;
  void Step(VectorId gradients, int64_t count, int64_t samples, Effects& effects);
  void OnExchange(const Exchange& exchange, Effects& effects);
  void OnReplica(const Replica& replica, Effects& effects);
  void SendExchangeIfDue(Effects& effects);
  void SendExchange(Effects& effects);
  void OnFlush(Effects& effects);
  void EndRound(Effects& effects);
  void SendWeights(const std::vector<int>& workers, Effects& effects);
  void OnRegroup(const Regroup& regroup, Effects& effects);
  void OnHandover(const Handover& handover, Effects& effects);
  void OnProbe(ActorId from, Effects& effects);
  void TakeOver(const Handover& handover, Effects& effects);

  const int server_;
  const Placement placement_;
  const int64_t size_;
  const GsspOptions options_;

  int64_t version_ = 0;
  std::vector<int64_t> server_of_;  // by worker
  int64_t regroup_ = 0;             // number of the last Regroup
  ps::Admission admission_;         // of the group's workers
  std::vector<int64_t> has_;        // by worker: version of the weights that it was sent
  std::vector<int64_t> pushed_at_;  // by worker: time of its last push; 0: answered, or unknown
  std::vector<int64_t> early_;      // Handovers that came before their Regroup, as words
  int64_t acc_gradients_ = 0;       // since the last exchange
  int64_t acc_samples_ = 0;         // of them
  std::vector<int64_t> held_;       // by worker: samples of its gradient in this round; 0: none
  int64_t probed_ = 0;              // workers before this one: all of them at the end
  int64_t probed_at_ = 0;           // time of the probe that is under way
  std::vector<int64_t> alone_;      // by worker: what probes took
  int64_t exchanges_ = 0;
  int64_t answers_ = 0;  // weights sent to workers
  ProtocolReport counted_;
};

}  // namespace dtrain::gssp
