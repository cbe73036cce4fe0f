// The actors of easgd: workers with weights x of their own, and servers with a part each of the
// centre X, which is the model.
//
//   step ends:            x <- solver step with the worker's gradient
//   every `period` steps: the worker sends x to the servers and waits for X before its next step
//   on x at a server:     sends X, then X <- X + a (x - X)
//   on X at a worker:     x <- x + a (X - x)
//
// At the end of the run each worker meets the centre once more, with what it has learned since.
//
// Both sides use the values from before the meeting, so x + X stays the same.  a = beta / workers.
// No worker waits for another one.
//
// The learning rate of a worker follows the samples of all workers, as far as it knows: those of the
// others up to its last meeting, and its own.
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/message.h"
#include "framework/strategies/strategy.h"

namespace dtrain::easgd {

struct EasgdOptions {
  int64_t period = 10;  // steps of a worker between two meetings with the centre
  double beta = 0.9;
};

// A worker sends it to a server, with the server's part of the worker's weights.
struct Weights {
  static constexpr int kKind = 1;
  int64_t samples = 0;  // that the worker has computed since its last meeting

  DTRAIN_FIELDS(samples)
};

// A server answers with its part of the centre, as it was before the worker's weights moved it.
struct Centre {
  static constexpr int kKind = 2;
  int64_t samples = 0;  // that all workers have computed up to their last meetings

  DTRAIN_FIELDS(samples)
};

class EasgdWorker : public Actor {
 public:
  EasgdWorker(ActorId id, const ActorSetup& setup, const EasgdOptions& options);

  std::vector<VectorSpec> Vectors() const override;
  void OnBegin(Effects& effects) override;
  void OnEnd(const StepReport& report, Effects& effects) override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;
  void OnQuiescent(const QuiescentState& quiescent, Effects& effects) override;
  double MasterShare() const override { return 0; }  // the centre alone is the model

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;

 private:
  enum : VectorId { kGradient, kWeights };
  enum Phase : int64_t { kIdle, kWaiting, kComputing };  // kWaiting: the trainer wants to start

  void Meet(Effects& effects);
  void Advance(Effects& effects);

  const ActorId id_;
  const Placement placement_;
  const int64_t size_;
  const EasgdOptions options_;

  int64_t phase_ = kIdle;
  int64_t clock_ = 0;    // steps finished
  int64_t awaited_ = 0;  // servers that have not answered yet
  int64_t own_ = 0;      // samples since the last meeting
  int64_t known_ = 0;    // samples of all workers, as far as this one knows
  int64_t news_ = 0;     // the part of them that its master does not know yet
};

class EasgdServer : public Actor {
 public:
  EasgdServer(int server, const ActorSetup& setup, const EasgdOptions& options);

  std::vector<VectorSpec> Vectors() const override {
    return {{"centre", VectorRole::kMaster, shard_}};
  }
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kCentre };

  const int server_;
  const Range shard_;
  const double rate_;  // a
  int64_t meetings_ = 0;
  int64_t samples_ = 0;  // of all workers up to their last meetings
};

}  // namespace dtrain::easgd
