// InlineExchange: the exchange of a run with one rank.  It has no network and no thread; every
// event is handled by the call that causes it.
#pragma once

#include "framework/exchange/exchange.h"
#include "framework/exchange/rank_parts.h"

namespace dtrain {

class InlineExchange : public Exchange {
 public:
  // `transport` has one rank and is used only by AtBoundary.  `threads`: threads that solver
  // updates may use.  `device`: the device that the net computes on.  Weights, gradients and the
  // solver's state are in its memory if only the net and the solver access them: without servers,
  // compression (device_residual.h) and gradient statistics.
  InlineExchange(const ExchangeSpec& spec, Transport& transport, int threads = 1,
                 const Device& device = {});

  Turn Begin(int64_t samples) override;
  Arena gradients() override { return parts_.gradients(); }
  // What uses the gradient comes behind it in the device's queue.
  void Ready(Range range, const ReadyEvent& written = {}) override;
  void SumOverWorkers(std::span<double>) override {}  // one worker: nothing to add
  StepOutcome End(const StepReport& report) override;
  StepGraph* steps() override { return steps_.get(); }
  LossScale loss_scale() const override {
    return steps_ == nullptr ? LossScale() : steps_->scale();
  }
  std::span<const StepResults> results() const override { return results_; }
  void AtBoundary(const std::function<void(Transport&)>& work) override { work(transport_); }
  void Collect(bool with_solver) override { parts_.model.Collect(transport_, with_solver); }
  Blob weights() override { return parts_.model.weights(); }
  const float* HostWeights() override { return parts_.model.HostWeights(); }
  std::span<float* const> solver_state() override { return parts_.model.solver_state(); }
  int64_t updates() override { return parts_.model.updates(); }
  std::optional<double> spread() override { return parts_.model.spread(); }
  Own SaveOwn() override { return {parts_.Save(), parts_.driver.Holds()}; }
  void Leave() override;
  Quiescence::Progress progress() const override { return parts_.quiescence.progress(); }
  ExchangeStats stats() const override {
    const Driver& driver = parts_.driver;
    return {{},
            0,
            driver.Report().Since(parts_.protocol_before),
            driver.WorkerReport().Since(parts_.worker_before),
            driver.compression()};
  }
  const EventLog& record() const override { return parts_.log; }
  RankTimeline* timeline() override { return parts_.timeline.get(); }

 private:
  RankDependencies Dependencies(const Device& device, int threads);

  Transport& transport_;
  const ExchangeSpec spec_;
  const WallClock clock_;
  BlobPools pools_;
  std::unique_ptr<StepGraph> steps_;  // null if the vectors are in host memory
  RankParts parts_;
  std::span<const StepResults> results_;  // of the last End
  Range last_;                            // the last range of the step's gradient, which End sends
};

}  // namespace dtrain
