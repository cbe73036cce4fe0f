#include "framework/runtime/trainer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "framework/comm/gather.h"
#include "framework/core/time.h"
#include "framework/data/prefetch.h"
#include "framework/device/cpu/threads.h"
#include "framework/runtime/evaluator.h"
#include "framework/runtime/mean_state.h"
#include "framework/runtime/micro_batches.h"
#include "framework/runtime/rank_report.h"
#include "framework/runtime/run_outputs.h"
#include "framework/runtime/run_setup.h"
#include "framework/runtime/start_point.h"
#include "framework/runtime/status_record.h"
#include "framework/runtime/stop_signal.h"
#include "framework/runtime/training_step.h"
#include "framework/runtime/translator.h"
#include "framework/runtime/weights_hash.h"
#include "framework/runtime/world.h"

namespace dtrain {
namespace {

// Where the time of a run went, since its start or resume.
struct Accounts {
  Nanos begun = WallNow();
  Nanos training = 0;  // without evaluation and checkpoints
  Nanos compute = 0;
  int64_t steps = 0;  // of this rank's worker
  std::vector<double> step_seconds;
};

class Trainer {
 public:
  Trainer(const RunConfig& config, const TrainRequest& request, Transport& transport)
      : config_(config),
        request_(request),
        transport_(transport),
        placement_(PlacementOf(config)),
        synchronous_(config.strategy->synchronous()),
        learning_rate_(config.solver, static_cast<double>(config.epochs), placement_.workers),
        outputs_(config, transport.rank() == 0),
        status_(StatusRecord::OfThisProcess(transport.rank())) {}

  TrainResult Run();

 private:
  bool root() const { return transport_.rank() == 0; }
  bool HasWorker() const { return placement_.IsWorker(transport_.rank()); }
  int workers() const { return placement_.workers; }

  void SetUp();
  StartPoint AgreeOnStart();
  void CheckPosition();
  void PrepareNet(const StartPoint& start);
  std::unique_ptr<Prefetcher> MakeBatches() const;
  ExitCode Loop();
  void TrainStep(const Batch& batch, Turn turn);
  void Account(int64_t samples, Nanos started, Nanos computed);
  void Follow(const StepOutcome& outcome);
  void MoveTo(int64_t samples_applied);
  void Log();
  std::optional<ExitCode> AtRest(const RestState& state);
  bool EvaluationDue() const;
  bool CheckpointDue(bool stop) const;
  void MeanStatistics();
  void Evaluate();
  void EvaluateOn(Split split);
  void SaveCheckpoint();
  ExitCode Diverge();
  void SaveRecord(const std::string& weights_sha256);
  void SaveTimeline();
  Summary Summarize(ExitCode code);

  bool RunEnds() const { return position_.samples_applied >= rule_.last_samples; }
  void Say(Doing doing) { status_.Update(doing, position_.step, ToSeconds(accounts_.compute)); }
  MetricsPoint Here() const {
    return {std::max<int64_t>(position_.step - 1, 0) / rule_.steps_per_epoch(), position_.step,
            position_.samples_applied, ToSeconds(WallNow() - accounts_.begun)};
  }

  const RunConfig& config_;
  const TrainRequest& request_;
  Transport& transport_;
  const Placement placement_;
  const bool synchronous_;
  const LearningRate learning_rate_;
  RunOutputs outputs_;
  StatusRecord status_;

  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Graph> graph_;  // for this data set
  std::unique_ptr<Sampler> sampler_;
  ModelLayout layout_;  // of checkpoints; rank 0
  ExecutionPlan plan_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<Pacer> pacer_;
  Buffer state_;       // batch-norm statistics of this worker
  Buffer mean_state_;  // of all workers, as of the last rest
  std::unique_ptr<Exchange> exchange_;

  RestRule rule_;
  TrainingPosition first_;     // where this run began
  TrainingPosition position_;  // as far as this rank knows
  TrainingPosition rested_;    // at the last rest
  int64_t saved_samples_ = 0;  // at the last checkpoint, or the one that the run began with
  Accounts accounts_;
  Rest::Told told_;  // asynchronous: as far as it is logged
  Nanos timeline_origin_ = 0;
  double loss_ = 0;    // of the last step, mean over its samples
  Nanos exposed_ = 0;  // of the last step: what Begin and End waited
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
  AgreeOnRun(transport_, config_, *graph_, plan_, *dataset_);
  sampler_ = std::make_unique<Sampler>(config_.seed, *dataset_, config_.batch);
  rule_ = RestRuleOf(config_, dataset_->size(Split::kTrain));
  first_ = position_ = rested_ = start.position;
  saved_samples_ = start.position.samples_applied;
  CheckPosition();
  PrepareNet(start);
  TryTogether(transport_,
              [&] { outputs_.Open(*graph_, plan_, position_, rule_.StepsOf(rule_.last_samples)); });
  exchange_ = MakeExchange(config_, graph_->weights(), plan_, start, rule_, transport_);
}

// All load the data, which the model follows (vocabularies); rank 0 finds where to begin and
// decides the plan; all get both.
StartPoint Trainer::AgreeOnStart() {
  StartPoint start;
  const int threads = AgreeOnThreads(transport_, workers());
  TryTogether(transport_, [&] {
    ReadModel(config_);  // its mistakes come before the data's, which may take a while
    if (HasWorker()) CheckPrecision(config_.precision);
    dataset_ = LoadData(config_);
    graph_ = std::make_unique<Graph>(ReadModel(config_, dataset_->fields()));
    if (!root()) return;
    outputs_.CreateFolder(request_.resume != "none");
    layout_ = ModelLayoutOf(*graph_, *dataset_);
    start = FindStart(*graph_, layout_, config_, request_, outputs_.folder());
    plan_ = DecidePlan(config_, *graph_, workers(), threads);
    FollowPlanOf(start, config_, plan_);
  });
  plan_ = PlanFromJson(Broadcast(transport_, root() ? ToJson(plan_) : ""), "rank 0's plan");
  return BroadcastStart(transport_, std::move(start));
}

// A step only means the same samples with the batch and the training set it was counted with.
void Trainer::CheckPosition() {
  const int64_t expected = rule_.SamplesOf(position_.step);
  const bool fits = synchronous_ ? position_.samples_applied == expected
                                 : rule_.StepsOf(position_.samples_applied) == position_.step;
  if (fits) return;
  throw SharedError(
      ExitCode::kCheckpoint,
      fmt::format("the checkpoint's step {} had applied {} samples, here it would be {}",
                  position_.step, position_.samples_applied, expected),
      "resume with the batch and the data set of the run that wrote it");
}

// Compiled for the sizes of a full mini-batch and of the last one of an epoch; others follow when
// they come.
void Trainer::PrepareNet(const StartPoint& start) {
  state_ = Buffer(static_cast<size_t>(graph_->state().size()) * sizeof(float));
  std::copy(start.state.begin(), start.state.end(), state_.f32());
  mean_state_ = Buffer(state_.bytes());
  std::copy(start.state.begin(), start.state.end(), mean_state_.f32());
  if (!HasWorker()) return;
  const int rank = transport_.rank();
  const uint64_t last = sampler_->steps_per_epoch() - 1;
  const int64_t share = sampler_->ShareOf(0, rank, workers()).share.size();
  net_ = std::make_unique<Net>(*graph_, DeviceOf(plan_), plan_.kernels);
  net_->Prepare(Mode::kEvaluate,
                std::min(EvaluationBlockOf(*dataset_), dataset_->size(Split::kTest)));
  PrepareParts(*net_, sampler_->ShareOf(last, rank, workers()).share.size(), config_.accumulate);
  PrepareParts(*net_, share, config_.accumulate);
  plan_.kernels = net_->ChosenKernels(LargestPart(share, config_.accumulate));
  pacer_ =
      std::make_unique<Pacer>(*graph_, PacingOf(config_.cluster, workers(), rank, config_.seed));
}

std::unique_ptr<Prefetcher> Trainer::MakeBatches() const {
  if (!HasWorker()) return nullptr;
  const int rank = transport_.rank();
  const uint64_t first = static_cast<uint64_t>(first_.step);
  // A resumed asynchronous run goes on as if all its workers had been equally fast.
  BatchFiller filler =
      synchronous_ ? TrainingBatches(*dataset_, *sampler_, rank, workers(), first,
                                     static_cast<uint64_t>(rule_.StepsOf(rule_.last_samples)))
                   : OwnBatches(*dataset_, *sampler_, rank, workers(), first);
  return std::make_unique<Prefetcher>(dataset_->fields(), sampler_->MaxShare(workers()),
                                      std::move(filler));
}

ExitCode Trainer::Loop() {
  const std::unique_ptr<Prefetcher> batches = MakeBatches();
  accounts_.step_seconds.reserve(
      static_cast<size_t>(std::max<int64_t>(rule_.StepsOf(rule_.last_samples) - first_.step, 0)));
  const Batch* batch = batches ? batches->Next() : nullptr;
  if (config_.timeline) exchange_->AtRest([](Transport& transport) { transport.Barrier(); });
  timeline_origin_ = WallNow();
  for (;;) {
    const Nanos asked = WallNow();
    Turn turn = exchange_->Begin(batch == nullptr ? 0 : batch->samples);
    if (!turn.rest) {
      const Nanos begun = WallNow();
      exposed_ = begun - asked;
      if (RankTimeline* timeline = exchange_->timeline()) timeline->Waited(asked, begun);
      TrainStep(*batch, std::move(turn));
      batch = batches->Next();
    } else if (const std::optional<ExitCode> end = AtRest(turn.state)) {
      return *end;
    } else {
      exchange_->Leave();
    }
  }
}

void Trainer::TrainStep(const Batch& batch, Turn turn) {
  const Nanos started = WallNow();
  const StepResult result =
      ForwardBackward(*net_, *exchange_, std::move(turn.weights), batch, state_.f32(), config_.seed,
                      pacer_.get(), config_.accumulate);
  const Nanos computed = WallNow();
  const StepOutcome outcome = exchange_->End({.samples = batch.samples,
                                              .loss_sum = LossBySamples(result, batch),
                                              .stop = StopRequested(),
                                              .global_samples = batch.global_samples,
                                              .compute = computed - started});
  Account(batch.samples, started, computed);
  Follow(outcome);
}

void Trainer::Account(int64_t samples, Nanos started, Nanos computed) {
  const Nanos ended = WallNow();
  if (RankTimeline* timeline = exchange_->timeline()) {
    timeline->Computed(started, computed, samples);
    timeline->Exposed(computed, ended);
  }
  const Nanos step = exposed_ + ended - started;
  accounts_.compute += computed - started;
  exposed_ += ended - computed;
  accounts_.training += step;
  ++accounts_.steps;
  accounts_.step_seconds.push_back(ToSeconds(step));
}

// Where the run stands after this step: what all workers did of it, or what rank 0 has been told.
void Trainer::Follow(const StepOutcome& outcome) {
  if (synchronous_) {
    loss_ = outcome.loss_sum / static_cast<double>(std::max<int64_t>(outcome.samples, 1));
    MoveTo(position_.samples_applied + outcome.samples);
  } else {
    const Rest::Told told = exchange_->told();
    if (told.samples_applied <= position_.samples_applied) return Say(Doing::kTraining);
    loss_ = (told.loss_sum - told_.loss_sum) /
            static_cast<double>(std::max<int64_t>(told.samples - told_.samples, 1));
    told_ = told;
    MoveTo(told.samples_applied);
  }
  Say(Doing::kTraining);
  Log();
}

void Trainer::MoveTo(int64_t samples_applied) {
  position_.samples_applied = samples_applied;
  position_.step = rule_.StepsOf(samples_applied);
  position_.epoch = samples_applied / rule_.epoch_samples;
}

void Trainer::Log() {
  const double epochs =
      static_cast<double>(position_.samples_applied) / static_cast<double>(rule_.epoch_samples);
  const double before =
      epochs - static_cast<double>(config_.batch) / static_cast<double>(rule_.epoch_samples);
  const double applied = static_cast<double>(position_.samples_applied - first_.samples_applied);
  outputs_.Step({Here(), loss_, learning_rate_.At(std::max(before, 0.0)),
                 applied / std::max(ToSeconds(accounts_.training), 1e-9), ToSeconds(exposed_),
                 RunEnds()});
}

// What is due when nothing is in flight; an exit code when the run is over.
std::optional<ExitCode> Trainer::AtRest(const RestState& state) {
  MoveTo(state.samples_applied);
  if (!state.finite) {
    exchange_->Collect(false);
    return Diverge();
  }
  const bool evaluate = EvaluationDue(), save = CheckpointDue(state.stop);
  if (evaluate || save || state.stop || RunEnds()) {
    exchange_->Collect(save);
    MeanStatistics();
  }
  if (evaluate) Evaluate();
  if (save) SaveCheckpoint();
  rested_ = position_;
  if (RunEnds()) return ExitCode::kDone;
  if (state.stop) return ExitCode::kStopped;
  return std::nullopt;
}

void Trainer::MeanStatistics() {
  const auto count = static_cast<size_t>(graph_->state().size());
  if (count == 0) return;
  exchange_->AtRest([&](Transport& transport) {
    GatherMeanState(transport, {state_.f32(), count}, StateWeights(*sampler_, workers()),
                    {mean_state_.f32(), count});
  });
}

bool Trainer::EvaluationDue() const {
  const int64_t every = config_.evaluate_every_epochs;
  return RunEnds() || (every > 0 && position_.epoch / every > rested_.epoch / every);
}

bool Trainer::CheckpointDue(bool stop) const {
  const RunConfig::Checkpoint& when = config_.checkpoint;
  if (position_.samples_applied == saved_samples_) return false;
  const auto passed = [](int64_t every, int64_t before, int64_t now) {
    return every > 0 && now / every > before / every;
  };
  return stop || RunEnds() || passed(when.every_epochs, rested_.epoch, position_.epoch) ||
         passed(when.every_steps, rested_.step, position_.step);
}

// While training on the validation split, where there is one: the test split is for the end.
void Trainer::Evaluate() {
  if (dataset_->has_validation()) EvaluateOn(Split::kValidation);
  if (!dataset_->has_validation() || RunEnds()) EvaluateOn(Split::kTest);
}

void Trainer::EvaluateOn(Split split) {
  const Nanos started = WallNow();
  Say(Doing::kEvaluating);
  const SentencePairs* const pairs = split == Split::kTest ? dataset_->sentence_pairs() : nullptr;
  std::vector<BlockResult> mine;
  BleuCounts bleu;
  if (HasWorker()) {
    const Blob weights = exchange_->weights();
    mine = EvaluateBlocks(*net_, *dataset_, split, weights.f32(), mean_state_.f32(),
                          transport_.rank(), workers());
    if (pairs != nullptr) {
      bleu = TranslateSplit(*net_, *pairs, split, weights.f32(), mean_state_.f32(),
                            transport_.rank(), workers());
    }
  }
  Evaluation result;
  exchange_->AtRest([&](Transport& transport) {
    result = JoinEvaluations(transport, *dataset_, mine);
    bleu = JoinCounts(transport, bleu);
  });
  if (bleu.reference_length > 0) result.bleu = bleu.Score();
  if (split == Split::kTest) test_ = result;
  const Nanos ended = WallNow();
  if (RankTimeline* timeline = exchange_->timeline()) timeline->Evaluated(started, ended);
  outputs_.Evaluated(Here(), split, result, ToSeconds(ended - started));
}

void Trainer::SaveCheckpoint() {
  const Nanos started = WallNow();
  Say(Doing::kCheckpointing);
  position_.updates = exchange_->updates();
  outputs_.Save(Here(), position_, {*graph_, plan_, *exchange_, mean_state_.f32(), layout_.text});
  saved_samples_ = position_.samples_applied;
  // The others wait here, not in their next step, where a slow disk would look like a stall.
  exchange_->AtRest([](Transport& transport) { Broadcast(transport, ""); });
  if (RankTimeline* timeline = exchange_->timeline()) timeline->Checkpointed(started, WallNow());
}

// Names where the first NaN or infinity is, in this rank's gradient or in the weights.
ExitCode Trainer::Diverge() {
  std::string where = "the loss";
  const Blob weights = exchange_->weights();
  for (const ArenaEntry& entry : graph_->weights().entries) {
    const auto finite = [&entry](const float* arena) {
      return std::all_of(arena + entry.range.begin, arena + entry.range.end,
                         [](float x) { return std::isfinite(x); });
    };
    const float* const gradients = exchange_->gradients();  // null: no step of its own so far
    const bool bad_gradient = HasWorker() && gradients != nullptr && !finite(gradients);
    if (!bad_gradient && finite(weights.f32())) continue;
    where = (bad_gradient ? "the gradient of " : "the weights of ") + entry.name;
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

// The order of events on every rank, where the config asks for it.
void Trainer::SaveRecord(const std::string& weights_sha256) {
  if (!config_.record) return;
  std::vector<std::string> logs;
  exchange_->AtRest(
      [&](Transport& transport) { logs = Gather(transport, exchange_->record().bytes()); });
  outputs_.SaveRecord({config_.effective_yaml, config_.model_yaml, plan_, first_.step,
                       request_.weights, weights_sha256, std::move(logs)});
}

void Trainer::SaveTimeline() {
  RankTimeline* const timeline = exchange_->timeline();
  if (timeline == nullptr) return;
  const TimelineRank mine{transport_.rank(), placement_.RoleOf(transport_.rank()),
                          timeline_origin_};
  std::vector<std::string> ranks;
  exchange_->AtRest([&](Transport& transport) { ranks = Gather(transport, timeline->Pack(mine)); });
  outputs_.SaveTimeline(ranks);
}

Summary Trainer::Summarize(ExitCode code) {
  Summary summary;
  const RankReport mine{accounts_.steps, accounts_.compute, exchange_->stats()};
  exchange_->AtRest(
      [&](Transport& transport) { GatherReports(transport, mine, workers(), summary); });
  const Blob weights = exchange_->weights();
  summary.weights_sha256 = WeightsSha256(ModelLayoutOf(*graph_), weights.f32(), mean_state_.f32());
  SaveRecord(summary.weights_sha256);
  SaveTimeline();
  if (!root()) return summary;
  DescribeRun(config_, *graph_, plan_, summary);
  summary.status = StatusOf(code);
  summary.exit_code = static_cast<int>(code);
  const double samples = static_cast<double>(position_.samples_applied);
  summary.epochs = samples / static_cast<double>(dataset_->size(Split::kTrain));
  summary.steps = samples / static_cast<double>(config_.batch);
  summary.seconds = ToSeconds(WallNow() - accounts_.begun);
  if (accounts_.training > 0) {
    summary.samples_per_second =
        static_cast<double>(position_.samples_applied - first_.samples_applied) /
        ToSeconds(accounts_.training);
    summary.step_seconds = StepSecondsOf(accounts_.step_seconds);
    summary.train_loss = loss_;
  }
  if (test_) {
    summary.test =
        TestResult{.loss = test_->loss, .perplexity = test_->perplexity, .bleu = test_->bleu};
    const std::vector<std::string> names = graph_->metric_names();
    if (!names.empty()) summary.test->accuracy = test_->metrics[0];
    for (size_t m = 1; m < names.size(); ++m) {
      summary.test->others.emplace_back(names[m], test_->metrics[m]);
    }
  }
  summary.best = outputs_.best();
  return summary;
}

}  // namespace

TrainResult Train(const RunConfig& config, const TrainRequest& request, Transport& transport) {
  return Trainer(config, request, transport).Run();
}

}  // namespace dtrain
