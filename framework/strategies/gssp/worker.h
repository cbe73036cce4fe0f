// GsspWorker: a worker of GSSP.  Like SSP's, but its one server is that of its group, has the whole
// model, and may change at a boundary (Regroup).
//
// It measures how long its steps take by themselves: forward and backward, and the way of its
// gradient to the server and of the weights back, without the time that the server kept its
// request.  That is what workers are grouped by: a worker that waits for others is not slow.
//
// With a compressor (GDTopK, gssp.md 5) it sends the larger entries of what it has gathered, by layer,
// at a density that the coordinator decides on, and keeps the rest; at the end of each epoch that goes
// out whole, to all servers (compress.flush).
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/placement.h"
#include "framework/strategies/strategy.h"

namespace dtrain::gssp {

class GsspWorker : public Actor {
 public:
  // `server_of`: by worker, to begin with.
  GsspWorker(ActorId id, const ActorSetup& setup, std::vector<int64_t> server_of);

  std::vector<VectorSpec> Vectors() const override;
  void OnBegin(Effects& effects) override;
  void OnEnd(const StepReport& report, Effects& effects) override;
  void OnMessage(ActorId from, const Message& message, Effects& effects) override;
  void OnQuiescent(const QuiescentState& quiescent, Effects& effects) override;

  void Visit(StateVisitor& visitor) override;
  std::string Describe() const override;
  void Report(ProtocolReport& report) const override;

 private:
  enum : VectorId { kGradient, kWeights, kArriving, kResidual, kOut };
  enum Phase : int64_t { kIdle, kWaiting, kComputing };  // kWaiting: the trainer wants to start

  ActorId MyServer() const { return placement_.ServerId(static_cast<int>(server_of_[id_])); }
  void Advance(Effects& effects);
  void SendGradient(int64_t samples, Effects& effects);

  const ActorId id_;
  const Placement placement_;
  const int64_t size_;
  const bool compresses_;
  const bool flushes_;  // its residual, at the end of each epoch

  int64_t phase_ = kIdle;
  std::vector<int64_t> server_of_;  // by worker
  int64_t clock_ = 0;               // steps finished
  int64_t awaited_ = 0;             // weights were asked for and are not there
  int64_t arrived_ = 0;             // `arriving` is newer than `weights`
  int64_t pushed_at_ = 0;
  int64_t epochs_ = 0;                        // whole ones when the residual was flushed last
  int64_t flushed_ = 0;                       // residuals sent, each to every group's server
  double density_;                            // of its gradients
  std::vector<int64_t> compute_, transfers_;  // of the last steps, ns, the oldest first
};

}  // namespace dtrain::gssp
