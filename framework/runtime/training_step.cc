#include "framework/runtime/training_step.h"

#include "framework/device/cpu/threads.h"
#include "framework/strategies/inline_exchange.h"
#include "framework/strategies/threaded_exchange.h"

namespace dtrain {
namespace {

class ReadyToExchange : public GradientSink {
 public:
  explicit ReadyToExchange(Exchange& exchange) : exchange_(exchange) {}
  void Ready(Range range) override { exchange_.Ready(range); }

 private:
  Exchange& exchange_;
};

}  // namespace

StepResult ForwardBackward(Net& net, Exchange& exchange, const Batch& batch, float* state,
                           uint64_t seed) {
  const Blob weights = exchange.Begin();
  ReadyToExchange sink(exchange);
  NetInput input;
  input.fields = batch.fields;
  input.samples = batch.samples;
  input.first_position = batch.first_position;
  input.global_samples = batch.global_samples;
  input.step = batch.step;
  input.seed = seed;
  return net.Step(weights.f32(), exchange.gradients(), state, input, &sink);
}

std::unique_ptr<Exchange> MakeExchange(const RunConfig& config, const Graph& graph,
                                       const ExecutionPlan& plan, const StartPoint& start,
                                       int64_t epoch_samples, Transport& transport) {
  const auto make_driver = [&](Collective* collective) {
    DriverOptions options;
    options.solver = config.solver;
    options.epochs = static_cast<double>(config.epochs);
    options.epoch_samples = epoch_samples;
    options.samples_applied = start.position.samples_applied;
    options.workers = transport.size();
    auto actor = config.strategy->MakeWorker(plan.buckets, config.solver.clip_norm > 0);
    auto driver = std::make_unique<Driver>(std::move(actor), graph.weights(), std::move(options), collective);
    driver->Restore(start.weights, start.solver);
    return driver;
  };
  if (transport.size() == 1) {
    return std::make_unique<InlineExchange>(make_driver(nullptr), transport);
  }
  const auto make_parts = [&](Transport& owned) {
    FlushDenormals();
    ThreadedExchange::Parts parts;
    parts.collective = MakeCollective(plan.collective, owned, {.chunk_bytes = plan.chunk_bytes});
    parts.driver = make_driver(parts.collective.get());
    return parts;
  };
  return std::make_unique<ThreadedExchange>(transport, make_parts, config.stall_seconds);
}

}  // namespace dtrain
