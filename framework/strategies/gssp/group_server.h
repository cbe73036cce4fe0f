// GroupServer: the server of one group of GSSP's workers.  Each group server has the whole model
// and a solver of its own.  The servers send each other their groups' gradients without waiting.
//
//   on Push(w):      weights <- solver step with w's gradient;  acc += it
//                    after K gradients: send acc to every other group's server;  acc = 0
//                    then as SspServer, among the workers of the group            (ps::Admission)
//   on GroupSync(h):  weights <- solver step with the sum of h's gradients
//
// So each gradient enters each server's weights once, with 1/W of the learning rate, W being the
// number of workers of all groups.  With plain SGD at a constant rate the servers are equal, up to
// rounding, once nothing is in flight and acc is flushed.  With momentum they are not, since a sum
// of gradients passes through it as one gradient (gssp.md 3.3).
//
// With `inside: bsp` the server waits for all workers of the group and makes one step with their
// mean; acc is sent at the end of a round, if it has K gradients or more.  With `exchange:
// averaging` the servers send their weights instead (Replica), and a server blends in the weights
// that arrive with the sending group's share of the workers.  Its own gradients are then averaged
// over its group only, and there is no acc.
//
// Before workers are grouped by speed, the coordinator asks the server to probe how long a step's
// transfers take for each worker of its group without contention: one worker after the other, at
// all servers in parallel.
//
// Staleness of a gradient = updates between the weights it was computed from and itself; an
// exchange counts as one update.
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
  // `server_of` has the initial server of each worker.
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
  enum : VectorId { kMaster, kAcc };  // kAcc is absent with averaging
  // The vectors after these have the workers' gradients (inside: bsp).
  VectorId Held(int worker) const { return (Averages() ? kMaster : kAcc) + 1 + worker; }

  bool Averages() const { return options_.between == Between::kAveraging; }

  int workers() const { return static_cast<int>(server_of_.size()); }
  int64_t Members() const;
  bool IsMember(int worker) const { return server_of_[worker] == server_; }
  bool IsActive(int server) const;
  bool HasOthers() const { return Members() < workers(); }  // there are workers in other groups

  void OnPush(int worker, const Push& push, Effects& effects);
  Update UpdateOf(VectorId sum, int64_t count, int64_t all, int64_t samples) const;
  void Step(VectorId gradients, int64_t count, int64_t samples, Effects& effects);
  void OnGroupSync(const GroupSync& sync, Effects& effects);
  void OnReplica(const Replica& replica, Effects& effects);
  void SendGroupSyncIfDue(Effects& effects);
  void SendGroupSync(Effects& effects);
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
  std::vector<int64_t> pushed_at_;  // by worker: time of its last push; 0: unknown
  std::vector<int64_t> early_;      // Handovers that arrived before their Regroup, 3 words each
  int64_t acc_gradients_ = 0;       // gradients since the last exchange
  int64_t acc_samples_ = 0;         // samples of these gradients
  std::vector<int64_t> held_;       // by worker: samples of its gradient in this round; 0: none
  int64_t probed_ = 0;              // the worker being probed; workers before it are done
  int64_t probed_at_ = 0;           // time at which that probe was sent
  std::vector<int64_t> alone_;      // by worker: time that the probe took
  int64_t exchanges_ = 0;
  int64_t answers_ = 0;  // weights sent to workers
  ProtocolReport counted_;
};

}  // namespace dtrain::gssp
