#include "framework/train/training_step.h"

#include <algorithm>
#include <cmath>

#include "framework/core/memory.h"
#include "framework/device/cpu/threads.h"
#include "framework/exchange/inline_exchange.h"
#include "framework/exchange/threaded/threaded_exchange.h"
#include "framework/nn/kernel.h"
#include "framework/nn/net.h"

namespace dtrain {
namespace {

class ReadyToExchange : public GradientSink {
 public:
  ReadyToExchange(Exchange& exchange, ReadyTimes* watch)
      : exchange_(exchange), watch_(watch), stays_(exchange.gradients().queue != nullptr) {}
  // Where a gradient stays on the device, nothing waits for it here.
  void Ready(Range range, const ReadyEvent& written) override {
    if (!stays_ || watch_ != nullptr) written.Wait();
    if (watch_ != nullptr) watch_->Ready(range);
    exchange_.Ready(range, stays_ ? written : ReadyEvent());
  }

 private:
  Exchange& exchange_;
  ReadyTimes* const watch_;
  const bool stays_;
};

class SumsOfExchange : public WorkerSums {
 public:
  explicit SumsOfExchange(Exchange& exchange) : exchange_(exchange) {}
  void Sum(std::span<double> values) override { exchange_.SumOverWorkers(values); }

 private:
  Exchange& exchange_;
};

bool Finite(const float* arena, const Range& range) {
  return std::all_of(arena + range.begin, arena + range.end,
                     [](float x) { return std::isfinite(x); });
}

}  // namespace

NetInput InputOf(const Batch& batch, uint64_t seed) {
  NetInput input;
  input.fields = batch.fields;
  input.on_device = batch.on_device;
  input.samples = batch.samples;
  input.first_position = batch.first_position;
  input.global_samples = batch.global_samples;
  input.global_terms = batch.global_terms;
  input.step = batch.step;
  input.seed = seed;
  return input;
}

StepResult ForwardBackward(Net& net, Exchange& exchange, Blob weights, const Batch& batch,
                           Arena state, uint64_t seed, Pacer* pacer, int64_t parts,
                           ReadyTimes* watch) {
  ReadyToExchange sink(exchange, watch);
  SumsOfExchange sums(exchange);
  NetInput input = InputOf(batch, seed);
  input.worker_sums = &sums;
  if (pacer != nullptr) pacer->BeginStep(static_cast<int64_t>(batch.step));
  if (watch != nullptr) watch->BeginStep();
  StepGraph* const steps = exchange.steps();
  const bool paced = pacer != nullptr && pacer->delays();
  if (steps != nullptr && parts == 1 && watch == nullptr && !paced && net.CanSubmit(input)) {
    input.worker_sums = nullptr;  // of one worker
    return net.Submit(*steps, weights.arena(), exchange.gradients(), state, input, &sink);
  }
  const StepResult result = StepInParts(net, parts, weights.arena(), exchange.gradients(), state,
                                        input, pacer == nullptr ? &sink : pacer->Wrap(&sink));
  if (pacer != nullptr) pacer->FinishStep();
  return result;
}

StepReport ReportOf(const StepResult& result, const BatchCounts& batch) {
  StepReport report{.samples = batch.samples,
                    .loss_sum = result.loss_sum * batch.loss_unit,
                    .global_samples = batch.global_samples,
                    .terms = batch.terms,
                    .global_terms = batch.global_terms,
                    .lags = result.later};
  if (batch.global_terms != batch.global_samples) {
    report.loss_sum *= static_cast<double>(batch.global_samples);
    report.loss_sum /= static_cast<double>(batch.global_terms);
  }
  return report;
}

TrainedEpoch TrainedOn(const StepResult& result, const BatchCounts& batch) {
  return {.samples = batch.samples,
          .terms = batch.terms,
          .loss_sum = result.loss_sum * batch.loss_unit,
          .correct = result.correct};
}

std::unique_ptr<Exchange> MakeExchange(const ExchangeSpec& spec, int threads, double stall_seconds,
                                       Transport& transport, const Device& device) {
  const auto make = [&]() -> std::unique_ptr<Exchange> {
    if (transport.size() == 1) {  // the trainer's thread and its team do everything
      return std::make_unique<InlineExchange>(spec, transport, threads, device);
    }
    return std::make_unique<ThreadedExchange>(transport, spec, stall_seconds, FlushDenormals,
                                              device);
  };
  return WithMemoryFor("the exchange's vectors: weights, gradients, the solver's", make);
}

std::string FirstNotFinite(const ArenaLayout& layout, const float* weights, ConstArena gradients) {
  std::vector<float> copy;
  if (gradients.data != nullptr && gradients.queue != nullptr) {
    copy = FloatsOf(gradients, layout.size());
    gradients = copy.data();
  }
  for (const ArenaEntry& entry : layout.entries) {
    if (gradients.data != nullptr && !Finite(gradients.data, entry.range)) {
      return "the gradient of " + entry.name;
    }
    if (!Finite(weights, entry.range)) return "the weights of " + entry.name;
  }
  return "the loss";
}

std::string FirstNotFinite(const ArenaLayout& layout, const NonFinitePlace& found) {
  const auto least = std::min(found.gradient, found.weight);
  if (least == NonFinitePlace::kNone) return "the loss";
  const auto entry_of = [&](unsigned long long element) {
    return std::ranges::find_if(layout.entries, [&](const ArenaEntry& entry) {
      return element < static_cast<unsigned long long>(entry.range.end);
    });
  };
  const auto gradient = entry_of(found.gradient), weight = entry_of(found.weight);
  return gradient <= weight ? "the gradient of " + gradient->name
                            : "the weights of " + weight->name;
}

}  // namespace dtrain
