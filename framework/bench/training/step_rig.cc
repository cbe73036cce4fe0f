#include "framework/bench/training/step_rig.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/core/random.h"
#include "framework/data/device_dataset.h"
#include "framework/data/text/vocabulary.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/train/training_step.h"

namespace dtrain {
namespace {

// Steps that a device with a queue does behind one another, and their seconds, at most.
constexpr int kTogether = 16;
constexpr double kTogetherSeconds = 0.1;
constexpr int64_t kEndless = int64_t{1} << 60;  // samples

int64_t BytesOf(std::span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) {
    if (t.data != nullptr) bytes += t.shape.count() * SizeOf(t.dtype);
  }
  return bytes;
}

// Counts every tensor argument of the call once.
int64_t BytesOf(const KernelTiming& t) {
  const KernelArgs& args = *t.args;
  const int64_t both = BytesOf(args.inputs) + BytesOf(args.params);
  if (!t.backward) return both + BytesOf(args.outputs);
  return both + BytesOf(args.output_gradients) + BytesOf(args.input_gradients) +
         BytesOf(args.param_gradients);
}

// Reduces the config to one worker, which has no other rank to exchange with.
RunConfig Alone(RunConfig config) {
  config::Document defaults = config::Document::Empty();
  config::Reader reader = defaults.root().Section("strategy");
  std::shared_ptr<Strategy> strategy = StrategyRegistry::Get("strategy", "allreduce").make();
  strategy->Configure(reader);
  config.strategy = std::move(strategy);
  config.strategy_name = "allreduce";
  config.workers = 1;
  config.record = config.timeline = false;
  return config;
}

// Replaces the plan's buckets by those for one worker.
ExecutionPlan Alone(ExecutionPlan plan, const RunConfig& alone, const Graph& graph) {
  plan.node_of.clear();
  ResolveBuckets(alone, LayerGradientsOf(graph), plan);
  return plan;
}

// Fills batches without end, since the measurement may be longer than the run.
BatchFiller BatchesFrom(const RunConfig& config, const Dataset& dataset, const Sampler& sampler,
                        int64_t first) {
  const auto workers = static_cast<int>(config.workers);
  const auto step = static_cast<uint64_t>(first);
  if (!config.strategy->traits().lockstep) return OwnBatches(dataset, sampler, 0, workers, step);
  return TrainingBatches(dataset, sampler, 0, workers, step, std::numeric_limits<uint64_t>::max());
}

}  // namespace

StepRig::StepRig(const RunConfig& config)
    : config_(Alone(config)),
      parts_(config.accumulate),
      graph_(std::make_unique<Graph>(ReadModel(config))),
      plan_(DecidePlan(config, *graph_, 1, ThreadsHere(1))),
      transport_(LocalWorld(1).Connect(0)),
      batch_(config.data.source->fields(), config.batch) {
  net_ = MakeNet(*graph_,
                 {.shares = {config.batch}, .parts = parts_, .measure = config.plan == "measure"},
                 plan_);
  std::vector<float> weights(static_cast<size_t>(graph_->weights().size()));
  graph_->InitializeWeights(config.seed, weights.data());
  std::vector<float> state(static_cast<size_t>(graph_->state().size()));
  graph_->InitializeState(state.data());
  state_ = Buffer(net_->device(), state.size() * sizeof(float));
  CopyIn(state_.arena(), state.data(), graph_->state().size());
  // One endless epoch: there is no boundary, and the learning rate is constant.
  MakeExchangeFor({.epoch_samples = kEndless, .batch = config.batch, .last_samples = kEndless},
                  {.weights = weights});
  batch_.Resize(config.batch);
  batch_.global_samples = config.batch;
  FillBatch(config.data.source->classes());
  // Batches of a run are made in the device's memory as well.
  if (queued()) batch_ = OnDevice(batch_, config.data.source->fields(), net_->device());
}

StepRig::StepRig(const RunConfig& config, RunInputs inputs)
    : config_(Alone(config)),
      parts_(config.accumulate),
      graph_(std::move(inputs.graph)),
      plan_(Alone(std::move(inputs.plan), config_, *graph_)),
      net_(std::move(inputs.net)),
      transport_(LocalWorld(1).Connect(0)),
      dataset_(OnDevice(std::move(inputs.dataset), parts_ > 1 ? Device{} : net_->device())) {
  const StartPoint& start = inputs.start;
  state_ = Buffer(net_->device(), start.state.size() * sizeof(float));
  CopyIn(state_.arena(), start.state.data(), graph_->state().size());
  MakeExchangeFor({.epoch_samples = dataset_->size(Split::kTrain),
                   .batch = config.batch,
                   .last_samples = kEndless},
                  {.samples_applied = start.position.samples_applied,
                   .updates = start.position.updates,
                   .weights = start.weights,
                   .solver = &start.solver});
  batches_ = std::make_unique<Prefetcher>(
      *dataset_, inputs.sampler->MaxShare(static_cast<int>(config.workers)),
      BatchesFrom(config, *dataset_, *inputs.sampler, start.position.step - start.step_offset));
}

StepRig::~StepRig() = default;

void StepRig::MakeExchangeFor(const BoundarySchedule& rule, ExchangeSpec::Start start) {
  ExchangeSpec spec = ExchangeOf(config_, *graph_, plan_, rule);
  spec.start = start;
  ready_ = std::make_unique<ReadyTimes>(spec.layer_gradients, 1000);
  exchange_ = MakeExchange(spec, plan_.threads, config_.stall_seconds, *transport_, net_->device());
}

void StepRig::FillBatch(int64_t classes) {
  const Random random(1, Purpose::kSelfTest);
  for (size_t f = 0; f < batch_.fields.size(); ++f) {
    const Tensor& field = batch_.fields[f];
    const int64_t words = graph_->inputs()[f].classes - token::kFirstWord;  // above 0 for sentences
    for (int64_t i = 0; i < field.shape.count(); ++i) {
      if (words > 0) {
        field.i32()[i] =
            token::kFirstWord + static_cast<int32_t>(random.Below(i, static_cast<uint64_t>(words)));
      } else if (field.dtype == DType::kI32) {
        field.i32()[i] = static_cast<int32_t>(random.Below(i, static_cast<uint64_t>(classes)));
      } else {
        field.f32()[i] = random.Normal(i);
      }
    }
  }
}

void StepRig::Step() { Step(ready_.get(), true); }

void StepRig::Steps(int count) {
  for (int i = 0; i < count; ++i) Step(nullptr, i + 1 == count);
}

// `last`: End waits for the device.
void StepRig::Step(ReadyTimes* watch, bool last) {
  if (batches_ == nullptr) batch_.step = step_;
  // Earlier steps may still read the batch before this one.
  const Batch& batch = batches_ == nullptr ? batch_ : *batches_->Next(net_->device().Record());
  Turn turn = exchange_->Begin(batch.samples);
  if (turn.boundary) {  // the only reason for a boundary here
    throw DivergedError(
        fmt::format("NaN or infinity in a gradient or the loss of measured step {}", step_),
        "a lower solver.lr, solver.clip_norm or solver.warmup_epochs may help");
  }
  ++step_;
  const StepResult result = ForwardBackward(*net_, *exchange_, std::move(turn.weights), batch,
                                            state_.arena(), config_.seed, nullptr, parts_, watch);
  exchange_->End(
      {.samples = batch.samples, .loss_sum = result.loss_sum, .lags = result.later && !last});
}

double KernelTimes::flops() const {
  return layer == nullptr ? 0 : layer->cost.forward_flops + layer->cost.backward_flops;
}

StepTimes TimeSteps(StepRig& rig, bool kernels, const std::function<bool(const StepTimes&)>& enough,
                    int warm_up) {
  StepTimes times;
  std::map<std::string, size_t> row_of;
  const auto note = [&](const KernelTiming& t) {
    const auto [it, fresh] = row_of.try_emplace(*t.name, times.kernels.size());
    if (fresh) times.kernels.push_back({*t.name, *t.implementation, t.layer});
    KernelTimes& kernel = times.kernels[it->second];
    // The traffic is the same in every step: computing it once does not slow timed steps down.
    if (kernel.bytes[t.backward] == 0) kernel.bytes[t.backward] = BytesOf(t);
    kernel.seconds[t.backward].push_back(ToSeconds(t.nanos));
  };
  if (kernels) rig.net().set_observer(note);
  const bool queued = !kernels && rig.queued();
  int together = 1;
  const auto run = [&] { queued ? rig.Steps(together) : rig.Step(); };
  for (int i = 0; i < warm_up; ++i) run();
  if (!queued) rig.ready().Clear();
  for (KernelTimes& kernel : times.kernels) {
    for (std::vector<double>& seconds : kernel.seconds) seconds.clear();
  }
  while (!enough(times)) {
    const Nanos start = WallNow();
    run();
    const double step = ToSeconds(WallNow() - start) / together;
    times.steps.insert(times.steps.end(), together, step);
    if (queued) together = std::clamp(static_cast<int>(kTogetherSeconds / step), 1, kTogether);
  }
  rig.net().set_observer(nullptr);
  return times;
}

}  // namespace dtrain
