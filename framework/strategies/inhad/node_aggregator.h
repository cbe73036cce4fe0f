// NodeAggregator: the actor that the workers of one compute node share.  It is the Aggregator, which
// sums their gradients, and the Postman, which communicates with the servers (inhad.md 4.2, 4.3).
//
//   Submit(g, base):  a partial sum += g;  IN += 1, which is sent to the Scheduler
//   Pull(version):    the sums are sent, each times its factor
//   Weights:          sent on to the workers when every server's part of a version has arrived
//
// The staleness of a gradient is known only at the pull.  So gradients are summed by base version,
// in slots.  With `late: wait` at most s_max + 1 versions are pending at a time.  With `late: drop`
// a sum that has to make room would be dropped at its pull in any case.  With `late: keep` two
// versions that share a slot are summed with their mean base, which is not exact, and counted as
// merged.  If factors do not depend on the base (and nothing is dropped by it) there is only one
// slot.  In lockstep with n = 1 each worker has a slot instead, so that the sum is made in worker
// order for any order of arrival, and has the same bits in every run.
//
// A node waits for no particular worker.  When one dies, the others' gradients are summed as
// before, and staleness does not depend on the dead one any more.  A node that dies itself, or that
// the Scheduler has given up, counts its pending gradients and those that still arrive as lost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/inhad/messages.h"
#include "framework/strategies/inhad/options.h"
#include "framework/strategies/strategy.h"

namespace dtrain::inhad {

class NodeAggregator : public Actor {
 public:
  NodeAggregator(int node, const ActorSetup& setup, const InhadOptions& options);

  std::vector<VectorSpec> Vectors() const override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;
  void OnTimer(int timer, Effects& effects) override;
  void OnGone(ActorId worker, Effects& effects) override;
  void OnDeath() override { LoseAll(); }
  void OnLostMessage(ActorId from, const Message& message) override;

  std::string Holds() const override;
  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kWeights, kOut, kFirstSlot };

  // Describes a partial sum.
  struct Slot {
    std::map<int64_t, int64_t> bases;  // number of gradients in the sum, by base
    int64_t samples = 0;

    bool empty() const { return bases.empty(); }
    int64_t count() const;
    // Returns the only base, or the mean of several, rounded down.
    int64_t base() const;
  };

  bool Lives(size_t local) const { return next_[local] != kNever; }
  void OnAsk(Effects& effects);
  void OnGiveUp(Effects& effects);
  void LoseAll();
  int SlotOf(ActorId worker, int64_t base) const;
  void OnSubmit(ActorId worker, const Submit& submit, Effects& effects);
  void AddTo(int slot, const Submit& submit, Effects& effects);
  void Drop(int slot, Effects& effects);
  void SayIn(Effects& effects);
  void OnPull(const Pull& pull, Effects& effects);
  double FactorOf(const Slot& slot, int64_t version, double mean_staleness) const;
  double MeanStaleness(int64_t version) const;
  void OnWeights(ActorId server, int64_t version, Effects& effects);
  int64_t Pending() const;
  int64_t LowPending() const;

  const int node_;
  const Placement placement_;
  const InhadOptions options_;
  const int64_t size_;
  const int64_t bound_;
  std::vector<ActorId> workers_;
  const bool slot_a_worker_;

  std::vector<Slot> slots_;
  int64_t submitted_ = 0;
  // Holds, by worker of the node, a lower bound of its next step's version; kNever if it has died.
  std::vector<int64_t> next_;
  int64_t in_under_way_ = 0;       // 1 if an IN was sent and its Noted has not arrived
  int64_t in_changed_ = 0;         // 1 if the values of IN changed since the last one
  int64_t in_too_early_ = 0;       // 1 if in_interval has not passed since the last IN
  std::vector<int64_t> versions_;  // by server: version of its part of `weights`
  int64_t dropped_untold_ = 0;     // gradients dropped since the last Grad
  int64_t dropped_ = 0;
  int64_t merged_ = 0;  // gradients summed with others of another base
  int64_t pulls_ = 0;   // pulls that were answered with gradients
  int64_t over_ = 0;    // 1 if it has died or was given up: all its gradients are lost
  int64_t lost_ = 0;    // gradients
};

}  // namespace dtrain::inhad
