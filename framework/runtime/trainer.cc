#include "framework/runtime/trainer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "framework/comm/gather.h"
#include "framework/core/time.h"
#include "framework/data/prefetch.h"
#include "framework/device/cpu/threads.h"
#include "framework/runtime/evaluator.h"
#include "framework/runtime/rank_report.h"
#include "framework/runtime/run_outputs.h"
#include "framework/runtime/run_setup.h"
#include "framework/runtime/start_point.h"
#include "framework/runtime/status_record.h"
#include "framework/runtime/stop_signal.h"
#include "framework/runtime/training_step.h"
#include "framework/runtime/weights_hash.h"
#include "framework/runtime/world.h"

namespace dtrain {
namespace {

// Where the time of a run went, since its start or resume.
struct Accounts {
  Nanos begun = WallNow();
  Nanos training = 0;   // without evaluation and checkpoints
  Nanos compute = 0;
  int64_t samples = 0;
  std::vector<double> step_seconds;

  double samples_per_second() const { return static_cast<double>(samples) / ToSeconds(training); }
};

class Trainer {
 public:
  Trainer(const RunConfig& config, const TrainRequest& request, Transport& transport)
      : config_(config),
        request_(request),
        transport_(transport),
        outputs_(config, transport.rank() == 0),
        status_(StatusRecord::OfThisProcess(transport.rank())) {}

  TrainResult Run();

 private:
  bool root() const { return transport_.rank() == 0; }
  int workers() const { return transport_.size(); }

  void SetUp();
  StartPoint AgreeOnStart();
  void CheckPosition();
  void PrepareNet(const StartPoint& start);
  ExitCode Loop();
  StepOutcome TrainStep(const Batch& batch);
  void Account(const Batch& batch, const StepOutcome& outcome, Nanos started, Nanos computed);
  void Log();
  void EvaluateIfDue();
  void CheckpointIfDue(bool stop);
  ExitCode Diverge();
  Summary Summarize(ExitCode code);

  bool EpochEnds() const { return position_.step % steps_per_epoch_ == 0; }
  bool RunEnds() const { return position_.step >= last_step_; }
  void Say(Doing doing) { status_.Update(doing, position_.step, ToSeconds(accounts_.compute)); }
  MetricsPoint Here() const {
    return {std::max<int64_t>(position_.step - 1, 0) / steps_per_epoch_, position_.step,
            position_.samples_applied, ToSeconds(WallNow() - accounts_.begun)};
  }

  const RunConfig& config_;
  const TrainRequest& request_;
  Transport& transport_;
  RunOutputs outputs_;
  StatusRecord status_;

  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Sampler> sampler_;
  ExecutionPlan plan_;
  std::unique_ptr<Net> net_;
  Buffer state_;
  std::unique_ptr<Exchange> exchange_;

  int64_t steps_per_epoch_ = 1;
  int64_t first_step_ = 0;
  int64_t last_step_ = 0;
  TrainingPosition position_;
  Accounts accounts_;
  double loss_ = 0;                 // of the last step, mean over the global batch
  double exposed_ = 0;              // of the last step: seconds that End waited
  std::optional<Evaluation> test_;
};

TrainResult Trainer::Run() {
  try {
    Say(Doing::kLoading);
    SetUp();
    const ExitCode code = Loop();
    TrainResult result{code, Summarize(code)};
    outputs_.Finish(result.summary);
    status_.End(static_cast<int>(code));
    return result;
  } catch (const Error& error) {
    status_.End(static_cast<int>(error.code()), error.what());
    throw;
  } catch (const std::exception& error) {
    status_.End(static_cast<int>(ExitCode::kInternal), error.what());
    throw;
  }
}

void Trainer::SetUp() {
  const StartPoint start = AgreeOnStart();
  ApplyThreadBudget(plan_.threads);
  TryTogether(transport_, [&] { dataset_ = LoadData(config_); });
  AgreeOnRun(transport_, config_, *graph_, plan_, *dataset_);
  sampler_ = std::make_unique<Sampler>(config_.seed, dataset_->size(Split::kTrain), config_.batch);
  steps_per_epoch_ = static_cast<int64_t>(sampler_->steps_per_epoch());
  last_step_ = config_.epochs * steps_per_epoch_;
  if (config_.max_steps > 0) last_step_ = std::min(last_step_, config_.max_steps);
  position_ = start.position;
  first_step_ = position_.step;
  CheckPosition();
  PrepareNet(start);
  TryTogether(transport_, [&] { outputs_.Open(*graph_, plan_, position_, last_step_); });
  exchange_ = MakeExchange(config_, *graph_, plan_, start, dataset_->size(Split::kTrain), transport_);
}

// Rank 0 finds where to begin and decides the plan; all get both.
StartPoint Trainer::AgreeOnStart() {
  StartPoint start;
  TryTogether(transport_, [&] {
    graph_ = std::make_unique<Graph>(ReadModel(config_));
    if (!root()) return;
    outputs_.CreateFolder(request_.resume != "none");
    start = FindStart(*graph_, config_, request_, outputs_.folder());
    plan_ = DecidePlan(config_, *graph_, workers(), static_cast<int>(transport_.node_ranks().size()));
    FollowPlanOf(start, config_, plan_);
  });
  plan_ = PlanFromJson(Broadcast(transport_, root() ? ToJson(plan_) : ""), "rank 0's plan");
  return BroadcastStart(transport_, std::move(start));
}

// A step only means the same samples with the batch and the training set it was counted with.
void Trainer::CheckPosition() {
  const int64_t size = dataset_->size(Split::kTrain);
  const int64_t epochs = position_.step / steps_per_epoch_;
  const int64_t within = position_.step % steps_per_epoch_ * config_.batch;
  const int64_t expected = epochs * size + std::min(within, size);
  if (position_.samples_applied == expected) return;
  throw SharedError(ExitCode::kCheckpoint,
                    fmt::format("the checkpoint's step {} had applied {} samples, here it would be {}",
                                position_.step, position_.samples_applied, expected),
                    "resume with the batch and the data set of the run that wrote it");
}

// This rank's share of a full batch and of the last one of an epoch.
void Trainer::PrepareNet(const StartPoint& start) {
  const uint64_t last = sampler_->steps_per_epoch() - 1;
  const int64_t share = sampler_->ShareOf(0, transport_.rank(), workers()).share.size();
  net_ = std::make_unique<Net>(*graph_, DeviceOf(plan_), plan_.kernels);
  net_->Prepare(Mode::kEvaluate, std::min(kEvaluationBlock, dataset_->size(Split::kTest)));
  net_->Prepare(Mode::kTrain, sampler_->ShareOf(last, transport_.rank(), workers()).share.size());
  net_->Prepare(Mode::kTrain, share);
  plan_.kernels = net_->ChosenKernels(share);
  state_ = Buffer(static_cast<size_t>(graph_->state().size()) * sizeof(float));
  std::copy(start.state.begin(), start.state.end(), state_.f32());
}

ExitCode Trainer::Loop() {
  Prefetcher batches(dataset_->fields(), sampler_->MaxShare(workers()),
                     TrainingBatches(*dataset_, *sampler_, transport_.rank(), workers(),
                                     static_cast<uint64_t>(first_step_),
                                     static_cast<uint64_t>(last_step_)));
  accounts_.step_seconds.reserve(static_cast<size_t>(std::max<int64_t>(last_step_ - first_step_, 0)));
  while (const Batch* batch = batches.Next()) {
    const StepOutcome outcome = TrainStep(*batch);
    if (!outcome.finite) return Diverge();
    Log();
    EvaluateIfDue();
    CheckpointIfDue(outcome.stop);
    if (outcome.stop && !RunEnds()) return ExitCode::kStopped;
  }
  if (!test_) EvaluateIfDue();  // a resumed run that had nothing left to do
  return ExitCode::kDone;
}

StepOutcome Trainer::TrainStep(const Batch& batch) {
  const Nanos started = WallNow();
  const StepResult result = ForwardBackward(*net_, *exchange_, batch, state_.f32(), config_.seed);
  const Nanos computed = WallNow();
  const StepOutcome outcome = exchange_->End({batch.samples, result.loss_sum, StopRequested()});
  Account(batch, outcome, started, computed);
  return outcome;
}

void Trainer::Account(const Batch& batch, const StepOutcome& outcome, Nanos started,
                      Nanos computed) {
  const Nanos ended = WallNow();
  accounts_.compute += computed - started;
  exposed_ = ToSeconds(ended - computed);
  accounts_.training += ended - started;
  accounts_.samples += outcome.samples;
  accounts_.step_seconds.push_back(ToSeconds(ended - started));
  position_.step = static_cast<int64_t>(batch.step) + 1;
  position_.samples_applied += outcome.samples;
  position_.epoch = position_.step / steps_per_epoch_;
  loss_ = outcome.loss_sum / static_cast<double>(std::max<int64_t>(outcome.samples, 1));
  Say(Doing::kTraining);
}

void Trainer::Log() {
  outputs_.Step({Here(), loss_, exchange_->learning_rate(), accounts_.samples_per_second(),
                 exposed_, RunEnds()});
}

void Trainer::EvaluateIfDue() {
  const int64_t every = config_.evaluate_every_epochs;
  const bool epoch_due = every > 0 && EpochEnds() && position_.epoch % every == 0;
  if (!RunEnds() && !epoch_due) return;
  const Nanos started = WallNow();
  Say(Doing::kEvaluating);
  const Blob weights = exchange_->weights();
  const std::vector<BlockResult> mine = EvaluateBlocks(
      *net_, *dataset_, Split::kTest, weights.f32(), state_.f32(), transport_.rank(), workers());
  exchange_->AtRest([&](Transport& transport) { test_ = JoinEvaluations(transport, mine); });
  outputs_.Evaluated(Here(), *test_, ToSeconds(WallNow() - started));
}

void Trainer::CheckpointIfDue(bool stop) {
  const RunConfig::Checkpoint& when = config_.checkpoint;
  const bool epoch_due =
      when.every_epochs > 0 && EpochEnds() && position_.epoch % when.every_epochs == 0;
  const bool step_due = when.every_steps > 0 && position_.step % when.every_steps == 0;
  if (!stop && !RunEnds() && !epoch_due && !step_due) return;
  Say(Doing::kCheckpointing);
  outputs_.Save(Here(), position_, {*graph_, plan_, *exchange_, state_.f32()});
  // The others wait here, not in their next step, where a slow disk would look like a stall.
  exchange_->AtRest([](Transport& transport) { Broadcast(transport, ""); });
}

// Names where the first NaN or infinity of the backward pass is; every rank has the same sums.
ExitCode Trainer::Diverge() {
  std::string where = "the loss";
  const float* gradients = exchange_->gradients();
  for (const ArenaEntry& entry : graph_->weights().entries) {
    const bool finite = std::all_of(gradients + entry.range.begin, gradients + entry.range.end,
                                    [](float g) { return std::isfinite(g); });
    if (finite) continue;
    where = "the gradient of " + entry.name;
    break;
  }
  outputs_.Diverged(position_, fmt::format("step {}: NaN or infinity in {} (loss {})",
                                           position_.step, where, loss_));
  return ExitCode::kDiverged;
}

std::string_view StatusOf(ExitCode code) {
  if (code == ExitCode::kDone) return "completed";
  return code == ExitCode::kStopped ? "stopped" : "failed";
}

Summary Trainer::Summarize(ExitCode code) {
  Summary summary;
  const RankReport mine{position_.step - first_step_, accounts_.compute, exchange_->stats()};
  exchange_->AtRest([&](Transport& transport) { GatherReports(transport, mine, summary); });
  if (!root()) return summary;
  DescribeRun(config_, *graph_, plan_, summary);
  summary.status = StatusOf(code);
  summary.exit_code = static_cast<int>(code);
  const double samples = static_cast<double>(position_.samples_applied);
  summary.epochs = samples / static_cast<double>(dataset_->size(Split::kTrain));
  summary.steps = samples / static_cast<double>(config_.batch);
  summary.seconds = ToSeconds(WallNow() - accounts_.begun);
  if (accounts_.training > 0) {
    summary.samples_per_second = accounts_.samples_per_second();
    summary.step_seconds = StepSecondsOf(accounts_.step_seconds);
    summary.train_loss = loss_;
  }
  if (test_) {
    summary.test = TestResult{test_->loss, std::nullopt, std::nullopt, std::nullopt};
    if (!test_->metrics.empty()) summary.test->accuracy = test_->metrics[0];
  }
  summary.best = outputs_.best();
  const Blob weights = exchange_->weights();
  summary.weights_sha256 = WeightsSha256(ModelLayoutOf(*graph_), weights.f32(), state_.f32());
  return summary;
}

}  // namespace

TrainResult Train(const RunConfig& config, const TrainRequest& request, Transport& transport) {
  return Trainer(config, request, transport).Run();
}

}  // namespace dtrain
