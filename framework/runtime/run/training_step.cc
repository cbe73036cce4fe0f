#include "framework/runtime/run/training_step.h"

#include <algorithm>

#include "framework/device/cpu/threads.h"
#include "framework/exchange/inline_exchange.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "framework/nn/worker_sums.h"
#include "framework/runtime/run/micro_batches.h"

namespace dtrain {
namespace {

class ReadyToExchange : public GradientSink {
 public:
  explicit ReadyToExchange(Exchange& exchange) : exchange_(exchange) {}
  void Ready(Range range, const ReadyEvent& written) override {
    written.Wait();
    exchange_.Ready(range);
  }

 private:
  Exchange& exchange_;
};

class SumsOfExchange : public WorkerSums {
 public:
  explicit SumsOfExchange(Exchange& exchange) : exchange_(exchange) {}
  void Sum(std::span<double> values) override { exchange_.SumOverWorkers(values); }

 private:
  Exchange& exchange_;
};

}  // namespace

NetInput InputOf(const Batch& batch, uint64_t seed) {
  NetInput input;
  input.fields = batch.fields;
  input.samples = batch.samples;
  input.first_position = batch.first_position;
  input.global_samples = batch.global_samples;
  input.global_terms = batch.global_terms;
  input.step = batch.step;
  input.seed = seed;
  return input;
}

StepResult ForwardBackward(Net& net, Exchange& exchange, Blob weights, const Batch& batch,
                           float* state, uint64_t seed, Pacer* pacer, int64_t parts) {
  ReadyToExchange sink(exchange);
  SumsOfExchange sums(exchange);
  NetInput input = InputOf(batch, seed);
  input.worker_sums = &sums;
  if (pacer != nullptr) pacer->BeginStep(static_cast<int64_t>(batch.step));
  const StepResult result = StepInParts(net, parts, weights.f32(), exchange.gradients(), state,
                                        input, pacer == nullptr ? &sink : pacer->Wrap(&sink));
  if (pacer != nullptr) pacer->FinishStep();
  return result;
}

StepReport ReportOf(const StepResult& result, const Batch& batch) {
  StepReport report{.samples = batch.samples,
                    .loss_sum = result.loss_sum,
                    .global_samples = batch.global_samples,
                    .terms = batch.terms,
                    .global_terms = batch.global_terms};
  if (batch.global_terms != batch.global_samples) {
    report.loss_sum *= static_cast<double>(batch.global_samples);
    report.loss_sum /= static_cast<double>(batch.global_terms);
  }
  return report;
}

Placement PlacementOf(const RunConfig& config) {
  return {static_cast<int>(config.workers), config.strategy->servers(),
          config.strategy->colocated()};
}

RestRule RestRuleOf(const RunConfig& config, int64_t epoch_samples) {
  RestRule rule{.epoch_samples = epoch_samples,
                .batch = config.batch,
                .evaluate_every_epochs = config.evaluate_every_epochs,
                .checkpoint_every_epochs = config.checkpoint.every_epochs,
                .checkpoint_every_steps = config.checkpoint.every_steps,
                .last_samples = config.epochs * epoch_samples};
  if (config.max_steps > 0) {
    rule.last_samples = std::min(rule.last_samples, rule.SamplesOf(config.max_steps));
  }
  return rule;
}

std::unique_ptr<Exchange> MakeExchange(const RunConfig& config, const ArenaLayout& layout,
                                       const ExecutionPlan& plan, const StartPoint& start,
                                       const RestRule& rule, Transport& transport) {
  RankSetup setup;
  setup.layout = &layout;
  setup.strategy = config.strategy.get();
  setup.actors = {PlacementOf(config), layout.size(), plan.buckets, config.solver.clip_norm > 0};
  setup.driver.solver = config.solver;
  setup.driver.epochs = static_cast<double>(config.epochs);
  setup.driver.epoch_samples = rule.epoch_samples;
  setup.driver.samples_applied = start.position.samples_applied;
  setup.driver.updates = start.position.updates;
  setup.driver.placement = setup.actors.placement;
  setup.driver.rank = transport.rank();
  setup.rule = rule;
  setup.collective = plan.collective;
  setup.chunk_bytes = plan.chunk_bytes;
  setup.record = config.record;
  setup.timeline = config.timeline;
  setup.weights = start.weights;
  setup.solver = &start.solver;
  if (transport.size() == 1) {  // the trainer's thread does it all, with its team
    setup.driver.threads = plan.threads;
    return std::make_unique<InlineExchange>(setup, transport);
  }
  return std::make_unique<ThreadedExchange>(transport, setup, config.stall_seconds, FlushDenormals);
}

}  // namespace dtrain
