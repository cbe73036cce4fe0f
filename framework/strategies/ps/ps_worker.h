// PsWorker: the worker of all parameter-server strategies.
//
//   step ends:   Push its part of the gradient to every server
//   step starts: when every server has answered with its part of the weights
//
// The first step needs no answer: all workers begin with the model's weights, version 0 at each
// server.  The strategies differ in two options only:
//
//   synchronous: a step is over when the servers have answered, and its outcome is that of all
//     workers.  Otherwise it is over once it is pushed, and the next one waits for admission.
//   prefetch: a step requests the weights for the next one when it starts, so that they are sent
//     while it computes.  They lack that step's gradient, even that of the worker itself: the
//     staleness is one step more, and there is no read-my-writes.  It is meant for servers that
//     answer every request at once.
//
// With a compressor the gradient is added to `residual`, and the entries that the compressor
// selects from it are pushed; the others stay for later steps.
//
// Answers are collected in `arriving`, which becomes `weights` when it is complete and no step
// computes with the old ones.  With one server both vectors are passed by reference.
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
  std::vector<int64_t> versions_;     // by server: version of its part of `weights`
  std::vector<int64_t> arriving_;     // by server: the same of `arriving`; kAwaited: no answer yet
  int64_t staleness_ = kNoStaleness;  // of the last push: the largest of the answers so far
  ProtocolReport counted_;
};

}  // namespace dtrain::ps
