// InhadNode: what the workers of one compute node share - the Aggregator, which sums their
// gradients, and the Postman, which speaks with the servers (inhad.md 4.2, 4.3).
//
//   Submit(g, base):  a partial sum += g;  IN += 1, and the Scheduler hears of it
//   Pull(version):    the sums go out, each times its factor
//   Weights:          handed on to the workers when every server's part of a version is there
//
// How old a gradient will be when it is applied is known at the pull only.  So gradients are summed
// by base version, in slots: with `late: wait` at most s_max + 1 versions are alive at a time, and
// with `late: drop` whatever has to make room would be thrown away at its pull in any case.  With
// `late: keep` two versions whose slots coincide are summed at their mean base, which is then not
// exact, and counted.  Where factors do not depend on the base (and nothing is dropped by it) there
// is one slot.  In lockstep with n = 1 each worker has a slot instead: the sum is then made in worker
// order, whatever the order of arrival, and so equal to the bit from run to run.
//
// It waits for no worker in particular: when one dies, the others' gradients are summed as before, and
// no staleness depends on the dead one any more.  A node that dies itself, or that the Scheduler has
// given up, counts what it has and what still comes as lost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/inhad/messages.h"
#include "framework/strategies/inhad/options.h"
#include "framework/strategies/strategy.h"

namespace dtrain::inhad {

class InhadNode : public Actor {
 public:
  InhadNode(int node, const ActorSetup& setup, const InhadOptions& options);

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

  // A partial sum.
  struct Slot {
    std::map<int64_t, int64_t> bases;  // how many gradients of which base are in it
    int64_t samples = 0;

    bool empty() const { return bases.empty(); }
    int64_t count() const;
    // The one base, or the mean of several, rounded down.
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
  // By worker of the node: its next step's version or an older one; kNever when it has died.
  std::vector<int64_t> next_;
  int64_t in_under_way_ = 0;       // an IN was sent and not noted yet
  int64_t in_changed_ = 0;         // since the last one
  int64_t in_too_early_ = 0;       // in_interval has not passed since the last one
  std::vector<int64_t> versions_;  // by server: of its part of `weights`
  int64_t dropped_untold_ = 0;     // since the last Grad
  int64_t dropped_ = 0;
  int64_t merged_ = 0;  // gradients summed with others of another base
  int64_t pulls_ = 0;   // that gradients answered
  int64_t over_ = 0;    // it has died, or was given up: what it had and what comes is lost
  int64_t lost_ = 0;    // gradients
};

}  // namespace dtrain::inhad
