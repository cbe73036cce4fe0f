// PsWorker: the worker of all parameter-server strategies.
//
//   step ends:   Push its part of the gradient to every server
//   step starts: when every server has answered with its part of the weights
//
// The first step needs no answer: all begin with the model's weights, version 0 at each server.
// The strategies differ in two things only:
//
//   synchronous: a step is over when the servers have answered, and its outcome is everybody's.
//     Otherwise it is over once pushed, and what the next one waits for is admission.
//   prefetch: the weights for the next step are asked for when a step starts, so that they travel
//     while it computes.  They lack that step's gradient, even in its own worker: one step more of
//     staleness, and no read-my-writes.  For servers that admit everybody at once.
//
// With a compressor the gradient is added to `residual`, and what is pushed are the entries that
// the compressor picks of it; the rest stays for later steps.
//
// Answers gather in `arriving`, which becomes `weights` when it is whole and no step computes with
// the old ones.  With one server both hand-overs are by reference.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/placement.h"
#include "framework/strategies/ps/messages.h"
#include "framework/strategies/strategy.h"

namespace dtrain::ps {

struct PsWorkerOptions {
  bool synchronous = false;
  bool prefetch = false;
};

class PsWorker : public Actor {
 public:
  PsWorker(std::string strategy, ActorId id, const ActorSetup& setup,
           const PsWorkerOptions& options);

  std::vector<VectorSpec> Vectors() const override;
  void OnBegin(Effects& effects) override;
  void OnEnd(const StepReport& report, Effects& effects) override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;
  void OnLostMessage(ActorId from, const Message& message) override;

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kGradient, kWeights, kArriving, kResidual, kOut };
  enum Phase : int64_t { kIdle, kWaiting, kComputing };  // kWaiting: the trainer wants to start

  void Note(ActorId from, const Weights& answer);
  bool AllAnswered() const;
  void Advance(Effects& effects);
  void Start(Effects& effects);

  const std::string strategy_;
  const ActorId id_;
  const Placement placement_;
  const int64_t size_;
  const PsWorkerOptions options_;
  const bool compresses_;
  const double density_;

  int64_t phase_ = kIdle;
  int64_t clock_ = 0;                 // steps finished
  std::vector<int64_t> versions_;     // by server: of `weights`
  std::vector<int64_t> arriving_;     // by server: of `arriving`; kAwaited until it has answered
  int64_t staleness_ = kNoStaleness;  // of the last push, by the answers so far
  ProtocolReport counted_;
};

}  // namespace dtrain::ps
