#include "framework/simulate/numeric_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/data/device_dataset.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "framework/setup/run_setup.h"
#include "framework/train/estimated_state.h"
#include "framework/train/mean_state.h"
#include "framework/train/training_step.h"

namespace dtrain {

NumericEngine::NumericEngine(const RunConfig& config, const Graph& graph, ExecutionPlan& plan,
                             std::shared_ptr<const Dataset> dataset)
    : seed_(config.seed),
      parts_(config.accumulate),
      lockstep_(config.strategy->traits().lockstep),
      threads_(plan.threads),
      estimate_samples_(SamplesOfEstimate(config, graph, *dataset)) {
  if (config.precision == "fp16") {
    throw ConfigError("precision fp16 is for training: a simulation does not scale the loss",
                      "precision: bf16");
  }
  const int workers = static_cast<int>(config.workers);
  sampler_ = std::make_unique<Sampler>(config.seed, *dataset, config.batch);
  const int64_t share = sampler_->MaxShare(workers);
  const NetUse use = {
      .shares = {share},
      .parts = parts_,
      .evaluated = std::min(EvaluationBlockOf(*dataset), dataset->size(Split::kTest)),
      .estimated = EstimateBatchOf(*dataset, estimate_samples_)};
  lanes_.resize(static_cast<size_t>(std::clamp(ThreadsHere(1) / threads_, 1, workers)));
  for (Lane& lane : lanes_) lane.net = MakeNet(graph, use, plan);
  dataset_ = OnDevice(std::move(dataset), lanes_[0].net->device());
  for (Lane& lane : lanes_) lane.batch = dataset_->MakeBatch(share);
  workers_.resize(static_cast<size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) {
    Worker& own = workers_[worker];
    own.state = Buffer(static_cast<size_t>(graph.state().size()) * sizeof(float));
    if (const auto& queue = lanes_[0].net->device().queue) own.state.PinFor(queue);
    graph.InitializeState(own.state.f32());
  }
  CountFrom(0);
  initial_weights_.resize(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(config.seed, initial_weights_.data());
  for (Lane& lane : lanes_) lane.thread = std::thread([this, &lane] { RunLane(lane); });
}

NumericEngine::~NumericEngine() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  begun_.notify_all();
  for (Lane& lane : lanes_) lane.thread.join();
}

void NumericEngine::CountFrom(int64_t step_offset) {
  constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();
  step_offset_ = step_offset;
  const int workers = static_cast<int>(workers_.size());
  for (int worker = 0; worker < workers; ++worker) {
    workers_[worker].batches =
        lockstep_ ? TrainingBatches(*dataset_, *sampler_, worker, workers, 0, kEndless, step_offset)
                  : OwnBatches(*dataset_, *sampler_, worker, workers, 0);
  }
}

int64_t NumericEngine::Begin(int worker, int64_t step, const Blob& weights, float* gradients) {
  Worker& own = workers_[worker];
  own.step = step;
  own.weights = weights;
  own.gradients = gradients;
  {
    const std::lock_guard lock(mutex_);
    own.computed = false;
    waiting_.push_back(&own);
  }
  begun_.notify_one();
  return SamplesOf(worker, step);
}

int64_t NumericEngine::SamplesOf(int worker, int64_t step) const {
  const auto k = static_cast<uint64_t>(step);
  const int workers = static_cast<int>(workers_.size());
  const StepShare part = lockstep_ ? sampler_->ShareOf(k - step_offset_, worker, workers)
                                   : sampler_->OwnShareOf(k, worker, workers);
  return part.share.size();
}

StepReport NumericEngine::End(int worker) {
  Worker& own = workers_[worker];
  {
    std::unique_lock lock(mutex_);
    computed_.wait(lock, [&] { return own.computed; });
  }
  if (own.error) std::rethrow_exception(std::exchange(own.error, nullptr));
  if (watcher_) watcher_(worker, own.step, own.found);
  return own.report;
}

void NumericEngine::RunLane(Lane& lane) {
  ApplyThreadBudget(threads_);
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    if (over_) return;
    Worker& worker = *waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    Compute(worker, lane);
    lock.lock();
    worker.computed = true;
    computed_.notify_all();
  }
}

void NumericEngine::Compute(Worker& worker, Lane& lane) const {
  try {
    worker.batches(static_cast<uint64_t>(worker.step), lane.batch);
    const StepResult result = StepInParts(*lane.net, parts_, worker.weights.f32(), worker.gradients,
                                          worker.state.f32(), InputOf(lane.batch, seed_), nullptr);
    worker.report = ReportOf(result, lane.batch);
    worker.found = TrainedOn(result, lane.batch);
  } catch (...) {
    worker.error = std::current_exception();
  }
  worker.weights = {};  // so that they need not be copied before an update
}

// Each lane evaluates a rank's part of the split.
Evaluation NumericEngine::Evaluate(Split split, ConstArena weights, ConstArena state) {
  Evaluation evaluation;
  LocalWorld::Run(static_cast<int>(lanes_.size()), [&](Transport& transport) {
    ApplyThreadBudget(threads_);
    Lane& lane = lanes_[transport.rank()];
    const Evaluation joined =
        JoinScores(transport, *dataset_,
                   ScoreSplit(*lane.net, *dataset_, split, weights, state, transport.rank(),
                              transport.size(), RunSearchOf(split)));
    if (transport.rank() == 0) evaluation = joined;
  });
  return evaluation;
}

// Each lane estimates a rank's part.
std::vector<float> NumericEngine::StateOf(ConstArena weights) {
  if (estimate_samples_ == 0) return MeanState();
  const std::span<const float> frozen = State(0);
  std::vector<float> state(frozen.size());
  LocalWorld::Run(static_cast<int>(lanes_.size()), [&](Transport& transport) {
    ApplyThreadBudget(threads_);
    std::vector<float> joined(frozen.size());
    JoinStates(
        transport,
        EstimateBatches(*lanes_[transport.rank()].net, *dataset_, *sampler_, estimate_samples_,
                        weights, frozen, transport.rank(), transport.size()),
        joined);
    if (transport.rank() == 0) state = std::move(joined);
  });
  return state;
}

std::vector<float> NumericEngine::MeanState() const {
  std::vector<const float*> states;
  std::vector<int64_t> weights = StateWeights(*sampler_, static_cast<int>(workers_.size()));
  for (size_t w = 0; w < workers_.size(); ++w) {
    states.push_back(workers_[w].state.f32());
    if (!workers_[w].lives) weights[w] = 0;  // its statistics were lost with it
  }
  std::vector<float> mean(workers_[0].state.bytes() / sizeof(float));
  MeanOfStates(states, weights, mean);
  return mean;
}

}  // namespace dtrain
