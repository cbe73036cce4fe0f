// InlineExchange: one rank, no network, no thread - every event is handled where it arises.
#pragma once

#include "framework/exchange/exchange.h"
#include "framework/exchange/rank_parts.h"

namespace dtrain {

class InlineExchange : public Exchange {
 public:
  // `transport` has one rank and is only for AtBoundary.  `threads`: of the trainer's team.  `device`:
  // where the net computes.  Weights, gradients and the solver's state are in its memory, where
  // nobody but the net and the solver touches them: with one worker that updates its own weights,
  // and neither compresses (device_residual.h) nor studies its gradients.
  InlineExchange(const ExchangeSpec& spec, Transport& transport, int threads = 1,
                 const Device& device = {});

  Turn Begin(int64_t samples) override;
  Arena gradients() override { return parts_.gradients(); }
  void Ready(Range range) override;
  void SumOverWorkers(std::span<double>) override {}  // of one worker
  StepOutcome End(const StepReport& report) override;
  void AtBoundary(const std::function<void(Transport&)>& work) override { work(transport_); }
  void Collect(bool with_solver) override { parts_.model.Collect(transport_, with_solver); }
  Blob weights() override { return parts_.model.weights(); }
  const float* HostWeights() override { return parts_.model.HostWeights(); }
  std::span<float* const> solver_state() override { return parts_.model.solver_state(); }
  int64_t updates() override { return parts_.model.updates(); }
  double spread() override { return parts_.model.spread(); }
  Own SaveOwn() override { return {parts_.Save(), parts_.driver.Holds()}; }
  void SetBuckets(const std::vector<Range>& buckets) override;
  SumTimes& sum_times() override { return parts_.sum_times; }
  void Leave() override;
  Quiescence::Told told() const override { return parts_.quiescence.told(); }
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
  Transport& transport_;
  ExchangeSpec spec_;
  const WallClock clock_;
  BlobPools pools_;
  RankParts parts_;
  Range last_;  // of the step's gradient: End sends it
};

}  // namespace dtrain
