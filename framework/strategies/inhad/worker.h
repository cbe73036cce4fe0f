// InhadWorker: a worker of InHAD.  It never waits for the network.
//
//   step starts: with the newest weights that its node has sent
//   step ends:   Submit its gradient to the node
//   weights:     kept in `arriving` while a step computes, and used from the next step on
//
// It waits in two cases only.  At most two gradients may be in flight to the node; a worker with
// two waits until the node has taken one, and counts that.  With `lockstep` a step waits for
// weights that are newer than the last step's.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/inhad/options.h"
#include "framework/strategies/strategy.h"

namespace dtrain::inhad {

class InhadWorker : public Actor {
 public:
  InhadWorker(ActorId id, const ActorSetup& setup, const InhadOptions& options);

  std::vector<VectorSpec> Vectors() const override;
  void OnBegin(Effects& effects) override;
  void OnEnd(const StepReport& report, Effects& effects) override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kGradient, kWeights, kArriving };
  enum Phase : int64_t { kIdle, kWaiting, kComputing };  // kWaiting: the trainer wants to start

  int64_t NextBase() const;
  bool MayStart() const;
  void Advance(Effects& effects);

  const ActorId id_;
  const ActorId node_;
  const int64_t size_;
  const bool lockstep_;

  int64_t phase_ = kIdle;
  int64_t base_ = 0;        // version of `weights`
  int64_t arriving_ = 0;    // version of `arriving`; equals base_ if there is none
  int64_t submitted_ = 0;   // gradients submitted
  int64_t under_way_ = 0;   // gradients that the node has not taken yet
  int64_t last_base_ = -1;  // base of the last gradient
  int64_t waits_ = 0;       // steps that had to wait for the node to take a gradient
};

}  // namespace dtrain::inhad
