// StepRig: a training run of one worker, step by step, on a device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/comm/local/local_world.h"
#include "framework/core/random.h"
#include "framework/data/device_dataset.h"
#include "framework/exchange/reducer.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/train/training_step.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {

class StepRig {
 public:
  // `solver` is the section of a run config, and may go on with others.  The batch holds zeros.
  // With `world`, it is one rank of several, which all make the same calls; else the only one.
  StepRig(const Device& device, const std::string& solver, Graph graph, int64_t samples,
          const LossScale& scale = {}, Transport* world = nullptr)
      : config_(Read(solver)),
        graph_(std::move(graph)),
        plan_(DecidePlan(config_, graph_, 1, 1)),
        net(graph_, device),
        alone_(LocalWorld(1).Connect(0)),
        transport_(world == nullptr ? *alone_ : *world),
        weights_(static_cast<size_t>(graph_.weights().size())),
        state(device, static_cast<size_t>(graph_.state().size()) * sizeof(float)),
        batch_(graph_.inputs(), samples) {
    graph_.InitializeWeights(3, weights_.data());
    std::vector<float> start(static_cast<size_t>(graph_.state().size()));
    graph_.InitializeState(start.data());
    CopyIn(state.arena(), start.data(), graph_.state().size());
    const int64_t all = transport_.size() * samples;
    const BoundarySchedule rule{
        .epoch_samples = 250 * all, .batch = all, .last_samples = 250 * all};
    ExchangeSpec spec = ExchangeOf(config_, graph_, plan_, rule);
    spec.start.weights = weights_;
    spec.start.loss_scale = scale;
    exchange = MakeExchange(spec, 1, 0, transport_, device);
    batch_.Resize(samples);
    batch_.terms = samples;
    batch_.global_samples = batch_.global_terms = all;
  }

  StepOutcome Step(int64_t parts = 1) {
    Turn turn = exchange->Begin(batch_.samples);
    batch_.step = there_.step = step_++;
    const StepResult result =
        ForwardBackward(net, *exchange, std::move(turn.weights), there_.on_device ? there_ : batch_,
                        state.arena(), 1, nullptr, parts);
    StepReport report = ReportOf(result, batch_);
    report.lags &= lags;
    StepOutcome outcome = exchange->End(report);
    for (const StepResults& of : exchange->results()) {
      if (result.later) outcome.loss_sum = LossOf(of);
    }
    return outcome;
  }
  double LossOf(const StepResults& results) const {
    return Reducer::OutcomeAlone(ReportOf(Net::ResultOf(results), batch_)).loss_sum;
  }
  // From now on steps read a copy of the batch in the device's memory, as those of a run do.
  void BringBatch() { there_ = OnDevice(batch_, graph_.inputs(), net.device()); }
  std::vector<float> Weights() {
    exchange->Collect(true);
    const float* const weights = exchange->HostWeights();
    return {weights, weights + graph_.weights().size()};
  }
  uint64_t BatchBytes() const {
    uint64_t bytes = 0;
    for (const Tensor& field : batch_.fields) {
      bytes += static_cast<uint64_t>(field.shape.count()) * SizeOf(field.dtype);
    }
    return bytes;
  }
  NetInput Input() const { return InputOf(batch_, 1); }
  const Graph& graph() const { return graph_; }
  Batch& batch() { return batch_; }

 private:
  static RunConfig Read(const std::string& solver) {
    config::Document document = config::Document::FromText(
        "model: lenet5\ndata: digits\nbatch: 4\nsolver: " + solver + "\n",
        DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
    return ReadRunConfig(document);
  }

  const RunConfig config_;
  const Graph graph_;
  const ExecutionPlan plan_;

 public:
  Net net;
  bool lags = false;  // steps end before their results are known

 private:
  const std::unique_ptr<Transport> alone_;
  Transport& transport_;
  std::vector<float> weights_;

 public:
  Buffer state;

 private:
  Batch batch_, there_;
  uint64_t step_ = 0;

 public:
  std::unique_ptr<Exchange> exchange;
};

// NormedRig: a run of a model with batch normalisation on four random images.  The model has enough weights that a
// selection of some is little beside them.
class NormedRig : public StepRig {
 public:
  static constexpr int64_t kSamples = 4;
  // `ratio` of the dropout before the last layer.
  NormedRig(const Device& device, const std::string& solver, const std::string& ratio = "0",
            const LossScale& scale = {}, Transport* world = nullptr)
      : StepRig(device, solver,
                Graph::FromText(
                    "name: normed\n"
                    "layers:\n"
                    "  - {name: conv, type: convolution, outputs: 4, kernel: 5, bias: false}\n"
                    "  - {name: norm, type: batch_norm}\n"
                    "  - {name: relu, type: relu}\n"
                    "  - {name: flat, type: flatten}\n" +
                        (ratio == "0" ? ""
                                      : "  - {name: drop, type: dropout, ratio: " + ratio + "}\n") +
                        "  - {name: fc, type: inner_product, outputs: 10}\n"
                        "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
                        "  - {name: accuracy, type: accuracy, input: [fc, label]}\n",
                    "m.yaml", {{"data", DType::kF32, {1, 28, 28}}, {"label", DType::kI32, {}, 10}}),
                kSamples, scale, world) {
    const auto rank = static_cast<uint64_t>(world == nullptr ? 0 : world->rank());
    const Random random(1, Purpose::kSelfTest, rank);
    for (int64_t i = 0; i < batch().fields[0].shape.count(); ++i) {
      batch().fields[0].f32()[i] = random.Normal(static_cast<uint64_t>(i));
    }
    for (int i = 0; i < kSamples; ++i) batch().fields[1].i32()[i] = i;
  }

  std::vector<float> Statistics() { return FloatsOf(state.arena(), graph().state().size()); }
};

}  // namespace dtrain
