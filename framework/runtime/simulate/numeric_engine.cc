#include "framework/runtime/simulate/numeric_engine.h"

#include <algorithm>
#include <limits>

#include "framework/comm/local/local_world.h"
#include "framework/core/error.h"
#include "framework/device/cpu/threads.h"
#include "framework/nn/net.h"
#include "framework/runtime/run/mean_state.h"
#include "framework/runtime/run/training_step.h"
#include "framework/runtime/setup/run_setup.h"

namespace dtrain {

NumericEngine::NumericEngine(const RunConfig& config, const Graph& graph, ExecutionPlan& plan,
                             std::shared_ptr<const Dataset> dataset)
    : seed_(config.seed), parts_(config.accumulate), dataset_(std::move(dataset)) {
  const int workers = static_cast<int>(config.workers);
  sampler_ = std::make_unique<Sampler>(config.seed, *dataset_, config.batch);
  const int64_t share = sampler_->MaxShare(workers);
  net_ =
      MakeNet(graph,
              {.shares = {share},
               .parts = parts_,
               .evaluated = std::min(EvaluationBlockOf(*dataset_), dataset_->size(Split::kTest))},
              plan);
  batch_ = std::make_unique<Batch>(dataset_->fields(), share);
  constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();
  for (int worker = 0; worker < workers; ++worker) {
    Worker& own = workers_.emplace_back();
    own.batches = config.strategy->synchronous()
                      ? TrainingBatches(*dataset_, *sampler_, worker, workers, 0, kEndless)
                      : OwnBatches(*dataset_, *sampler_, worker, workers, 0);
    own.state = Buffer(static_cast<size_t>(graph.state().size()) * sizeof(float));
    graph.InitializeState(own.state.f32());
  }
  initial_weights_.resize(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(config.seed, initial_weights_.data());
}

StepReport NumericEngine::Compute(int worker, int64_t step, const Blob& weights, float* gradients) {
  Worker& own = workers_[worker];
  own.batches(static_cast<uint64_t>(step), *batch_);
  const StepResult result = StepInParts(*net_, parts_, weights.f32(), gradients, own.state.f32(),
                                        InputOf(*batch_, seed_), nullptr);
  return ReportOf(result, *batch_);
}

Evaluation NumericEngine::Evaluate(Split split, const float* weights) {
  const auto transport = LocalWorld(1).Connect(0);
  return JoinScores(
      *transport, *dataset_,
      ScoreSplit(*net_, *dataset_, split, weights, MeanState().data(), 0, 1, RunSearchOf(split)));
}

std::vector<float> NumericEngine::MeanState() const {
  std::vector<const float*> states;
  std::vector<int64_t> weights = StateWeights(*sampler_, static_cast<int>(workers_.size()));
  for (size_t w = 0; w < workers_.size(); ++w) {
    states.push_back(workers_[w].state.f32());
    if (!workers_[w].lives) weights[w] = 0;  // its statistics went with it
  }
  std::vector<float> mean(workers_[0].state.bytes() / sizeof(float));
  MeanOfStates(states, weights, mean);
  return mean;
}

}  // namespace dtrain
