// GsspWorker: a worker of GSSP.  It is like SSP's worker, but has only one server, that of its
// group, which has the whole model and may change at a boundary (Regroup).
//
// It measures the time of its steps: forward and backward pass, and the transfers of its gradient
// to the server and of the weights back.  The time that the server held its request is subtracted,
// since a worker that waits for others is not slow.  Workers are grouped by these times.
//
// With a compressor (GDTopK, gssp.md 5) it sends the larger entries of its accumulated gradients,
// by layer, with a density that the coordinator decides on, and keeps the others in a residual.  At
// the end of each epoch it sends the whole residual to all servers (compress.flush).
#pragma once

#include <string>
#include <vector>

#include "framework/strategies/actor.h"
#include "framework/strategies/placement.h"
#include "framework/strategies/strategy.h"

namespace dtrain::gssp {

class GsspWorker : public Actor {
 public:
  // `server_of` has the initial server of each worker.
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
  const bool flushes_;  // it sends its residual at the end of each epoch

  int64_t phase_ = kIdle;
  std::vector<int64_t> server_of_;  // by worker
  int64_t clock_ = 0;               // steps finished
  int64_t awaited_ = 0;             // 1 if weights were requested and have not arrived
  int64_t arrived_ = 0;             // 1 if `arriving` is newer than `weights`
  int64_t pushed_at_ = 0;
  int64_t epochs_ = 0;                        // complete epochs at the last boundary
  int64_t flushed_ = 0;                       // messages with a residual that were sent
  double density_;                            // of its gradients
  std::vector<int64_t> compute_, transfers_;  // times of the last steps, ns, oldest first
};

}  // namespace dtrain::gssp
