#include "framework/train/trainer.h"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <optional>

#include "framework/comm/gather.h"
#include "framework/core/log.h"
#include "framework/core/time.h"
#include "framework/data/batches.h"
#include "framework/data/device_dataset.h"
#include "framework/evaluate/run_evaluation.h"
#include "framework/exchange/reducer.h"
#include "framework/launch/status_record.h"
#include "framework/launch/stop_signal.h"
#include "framework/launch/world.h"
#include "framework/nn/net.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/train/auto_strategy.h"
#include "framework/train/estimated_state.h"
#include "framework/train/mean_state.h"
#include "framework/train/plan_by_time.h"
#include "framework/train/rank_state.h"
#include "framework/train/run_accounts.h"
#include "framework/train/run_inputs.h"
#include "framework/train/run_outputs.h"
#include "framework/train/run_session.h"
#include "framework/train/share_times.h"
#include "framework/train/training_step.h"

namespace dtrain {
namespace {

class Trainer : public RunHost {
 public:
  Trainer(const RunConfig& config, const TrainRequest& request, Transport& transport)
      : config_(ResolveAutoStrategy(config, request, transport)),
        request_(request),
        transport_(transport),
        placement_(PlacementOf(config)),
        lockstep_(config.strategy->traits().lockstep),
        learning_rate_(config.solver, static_cast<double>(config.epochs), placement_.workers),
        outputs_(config_, transport.rank() == 0),
        status_(StatusRecord::OfThisProcess(transport.rank())) {}

  TrainResult Run();

 private:
  bool root() const { return transport_.rank() == 0; }
  bool HasWorker() const { return placement_.IsWorker(transport_.rank()); }
  int workers() const { return placement_.workers; }
  // Device of the net; the CPU without one.
  Device device() const { return net_ == nullptr ? Device{} : net_->device(); }

  Seconds Now() const override { return {accounts_.seconds(), accounts_.clock.At(WallNow())}; }
  void Collect(bool with_solver) override;
  BoundaryModel model() override;
  std::string FromRoot(const std::function<std::string()>& text) override;
  Evaluation Evaluate(Split split, const BestWeights& best) override;
  std::vector<std::string> WriteRankFiles(const std::filesystem::path& main,
                                          const TrainingPosition& position) override;
  void Does(Doing doing) override { Say(doing); }
  void Did(Doing doing, Nanos begun) override;

  bool SetUp();
  bool IsFinished(const StartPoint& start, const BoundarySchedule& rule);
  void PrepareState(const RunInputs& inputs);
  std::optional<ModelProfile> PlanBuckets(const StartPoint& start, const BoundarySchedule& rule);
  std::unique_ptr<Prefetcher> MakeBatches() const;
  ExitCode LoopOrAbandon();
  ExitCode Loop(Prefetcher* batches);  // null: this rank has no worker
  void TrainStep(const Batch& batch, Turn turn, Nanos waited);
  bool MayLag() const;
  void Settle();
  void Finish(const BatchCounts& batch, const StepResult& result, const StepOutcome& outcome);
  void Account(int64_t samples, Nanos waited, Nanos started, Nanos computed, Nanos ended);
  void Follow(const StepOutcome& outcome);
  void ReadBoundary();
  void Log();
  std::optional<ExitCode> AtBoundary(const BoundaryState& state);
  ExitCode Diverge();
  void SaveRecord(const std::string& weights_sha256);
  void SaveTimeline();
  Summary Summarize(ExitCode code);

  // The position of the run; its beginning before there is a session.
  TrainingPosition now() const { return session_ ? session_->now() : TrainingPosition{}; }
  void Say(Doing doing) {
    status_.Update(doing, now().step, ToSeconds(accounts_.compute));
    outputs_.Does(doing, now());
  }

  RunConfig config_;  // the strategy is named once `auto` has been resolved
  const TrainRequest& request_;
  Transport& transport_;
  const Placement placement_;
  const bool lockstep_;
  const LearningRate learning_rate_;
  RunOutputs outputs_;
  StatusRecord status_;

  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Graph> graph_;  // the model for this data set
  std::unique_ptr<Sampler> sampler_;
  ModelLayout layout_;  // layout of checkpoints; rank 0
  ExecutionPlan plan_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<Pacer> pacer_;
  Buffer state_;                  // batch-norm statistics of this rank's worker
  Buffer model_state_;            // those of the model at the last boundary
  int64_t estimate_samples_ = 0;  // SamplesOfEstimate
  std::unique_ptr<Exchange> exchange_;
  RankCheckpoint world_;  // this run's properties, for rank files
  // The steps that have ended without their results (StepReport::lags).
  struct LateStep {
    BatchCounts batch;
    StepOutcome outcome;
  };
  std::vector<LateStep> late_;
  Nanos late_since_ = 0;                      // start of the first of them
  Nanos late_waited_ = 0;                     // between them, for data
  std::optional<NonFinitePlace> non_finite_;  // what a device has found
  int64_t next_batch_ = 0;  // the number of mini-batches that this worker has had before

  std::optional<RunSession> session_;
  RunAccounts accounts_;
  EpochCounter trained_{lockstep_, placement_.workers};
  Nanos timeline_origin_ = 0;
};

TrainResult Trainer::Run() {
  try {
    Say(Doing::kLoading);
    if (!SetUp()) {
      status_.End(static_cast<int>(ExitCode::kDone));
      return {.finished_before = true};
    }
    const ExitCode code = LoopOrAbandon();
    Say(Doing::kFinishing);
    TrainResult result{code, Summarize(code)};
    outputs_.Finish(result.summary);
    status_.End(static_cast<int>(code));
    return result;
  } catch (const std::exception& exception) {
    const Error error = AsError(exception);
    status_.End(static_cast<int>(error.code()), error.what());
    outputs_.Failed(transport_.rank(), now(), error);
    throw;
  }
}

// Returns false if the run was finished before; then nothing is written.
bool Trainer::SetUp() {
  RunInputs inputs = AgreeOnInputs(transport_, config_, request_, outputs_);
  graph_ = std::move(inputs.graph);
  layout_ = std::move(inputs.layout);
  plan_ = std::move(inputs.plan);
  sampler_ = std::move(inputs.sampler);
  net_ = std::move(inputs.net);
  // A run that accumulates gradients is short of memory, so whole batches are kept out of device memory.
  dataset_ = OnDevice(std::move(inputs.dataset), config_.accumulate > 1 ? Device{} : device());
  const BoundarySchedule rule =
      BoundaryScheduleOf(config_, dataset_->size(Split::kTrain), inputs.start.step_offset);
  session_.emplace(SessionSetup{.config = config_,
                                .graph = *graph_,
                                .dataset = *dataset_,
                                .plan = plan_,
                                .layout = layout_,
                                .root = root(),
                                .folder = config_.output},
                   rule, inputs.start, *this);
  trained_.BoundaryAt(now().samples_applied);
  next_batch_ =
      inputs.worker ? inputs.worker->steps : now().step - (lockstep_ ? 0 : rule.step_offset);
  PrepareState(inputs);
  if (IsFinished(inputs.start, rule)) return false;
  const std::optional<ModelProfile> profile = PlanBuckets(inputs.start, rule);
  Say(Doing::kLoading);
  world_ = WorldOf(config_, *graph_, *dataset_, RunTime::kReal);
  TryTogether(transport_, [&] {
    outputs_.Open(*graph_, *dataset_, plan_, inputs.start, *session_);
    if (profile) outputs_.SaveProfile(*profile);
  });
  accounts_.seconds_before = session_->so_far().seconds;
  session_->EndWhereItEnded();
  ExchangeSpec spec = ExchangeOf(config_, *graph_, plan_, session_->position().rule());
  spec.start = {.samples_applied = now().samples_applied,
                .updates = now().updates,
                .loss_scale = now().loss_scale,
                .weights = inputs.start.weights,
                .solver = &inputs.start.solver,
                .ranks = &inputs.ranks,
                .kept = &inputs.start.ranks.kept};
  spec.statistics = outputs_.StudyGradients(next_batch_, !session_->kept_step());
  exchange_ = MakeExchange(spec, plan_.threads, config_.stall_seconds, transport_, device());
  return true;
}

std::string Trainer::FromRoot(const std::function<std::string()>& text) {
  std::string said;
  const auto share = [&](Transport& transport) {
    TryTogether(transport, [&] {
      if (root()) said = text();
    });
    if (transport.size() > 1) said = Broadcast(transport, said);
  };
  exchange_ ? exchange_->AtBoundary(share) : share(transport_);
  return said;
}

// Returns rank 0's answer, since only rank 0 reads the folder.
bool Trainer::IsFinished(const StartPoint& start, const BoundarySchedule& rule) {
  if (request_.resume == "none") return false;
  return FromRoot([&] {
           const bool finished = start.in_own_folder &&
                                 TellFinished(outputs_.folder(), config_, graph_->metric_names(),
                                              now(), start.so_far, rule);
           return finished ? "finished" : "";
         }) == "finished";
}

void Trainer::PrepareState(const RunInputs& inputs) {
  const StartPoint& start = inputs.start;
  state_ = Buffer(device(), static_cast<size_t>(graph_->state().size()) * sizeof(float));
  const std::vector<float>& own = inputs.worker ? inputs.worker->statistics : start.state;
  CopyIn(state_.arena(), own.data(), graph_->state().size());
  model_state_ = Buffer(state_.bytes());
  std::copy(start.state.begin(), start.state.end(), model_state_.f32());
  estimate_samples_ = SamplesOfEstimate(config_, *graph_, *dataset_);
  if (!HasWorker()) return;
  pacer_ = std::make_unique<Pacer>(
      *graph_, PacingOf(config_.cluster, workers(), transport_.rank(), config_.seed));
}

// Decides the buckets, and measures the times for that unless they are known.  Returns the measurement on rank 0.
std::optional<ModelProfile> Trainer::PlanBuckets(const StartPoint& start,
                                                 const BoundarySchedule& rule) {
  if (!plan_.buckets.empty() || !PlansByTime(config_)) return std::nullopt;
  if (config_.profile == "measure") Say(Doing::kMeasuring);
  Batch batch(dataset_->fields(), sampler_->MaxShare(workers()));
  TrainingBatches(*dataset_, *sampler_, transport_.rank(), workers(), 0, 1)(0, batch);
  return PlanByTime(
      transport_, *graph_, rule,
      {*net_, *pacer_, batch, start.weights, start.state, config_.accumulate, config_.seed},
      config_, plan_);
}

std::unique_ptr<Prefetcher> Trainer::MakeBatches() const {
  if (!HasWorker()) return nullptr;
  const int rank = transport_.rank();
  const RunPosition& position = session_->position();
  const uint64_t first = static_cast<uint64_t>(lockstep_ ? position.first().step : next_batch_);
  BatchFiller filler = lockstep_ ? TrainingBatches(*dataset_, *sampler_, rank, workers(), first,
                                                   static_cast<uint64_t>(position.last_step()),
                                                   position.rule().step_offset)
                                 : OwnBatches(*dataset_, *sampler_, rank, workers(), first);
  return std::make_unique<Prefetcher>(*dataset_, sampler_->MaxShare(workers()), std::move(filler));
}

// What the loop frees is a device's memory, which waits for the device.
ExitCode Trainer::LoopOrAbandon() {
  const std::unique_ptr<Prefetcher> batches = MakeBatches();
  try {
    return Loop(batches.get());
  } catch (...) {
    exchange_->Abandon();
    throw;
  }
}

ExitCode Trainer::Loop(Prefetcher* batches) {
  accounts_.step_seconds.reserve(
      static_cast<size_t>(std::max<int64_t>(session_->position().last_step() - now().step, 0)));
  const Batch* batch = batches != nullptr ? batches->Next() : nullptr;
  if (config_.timeline) exchange_->AtBoundary([](Transport& transport) { transport.Barrier(); });
  timeline_origin_ = WallNow();
  accounts_.clock.Start(timeline_origin_, session_->so_far().training_seconds);
  Say(Doing::kTraining);
  for (;;) {
    const Nanos asked = WallNow();
    Turn turn = exchange_->Begin(batch == nullptr ? 0 : batch->samples);
    if (!turn.boundary) {
      const Nanos begun = WallNow();
      if (RankTimeline* timeline = exchange_->timeline()) timeline->Waited(asked, begun);
      TrainStep(*batch, std::move(turn), begun - asked);
      const Nanos ended = WallNow();
      batch = batches->Next(late_.empty() ? ReadyEvent() : device().Record());
      if (!late_.empty()) late_waited_ += WallNow() - ended;
    } else if (const std::optional<ExitCode> end = AtBoundary(turn.state)) {
      return *end;
    } else {
      exchange_->Leave();
      Say(Doing::kTraining);
      accounts_.clock.Continue(WallNow());
    }
  }
}

void Trainer::TrainStep(const Batch& batch, Turn turn, Nanos waited) {
  const Nanos started = WallNow();
  if (late_.empty()) late_since_ = started - waited;
  const StepResult result =
      ForwardBackward(*net_, *exchange_, std::move(turn.weights), batch, state_.arena(),
                      config_.seed, pacer_.get(), config_.accumulate);
  const Nanos computed = WallNow();
  DT_CHECK(result.later || config_.precision != "fp16") << "the loss was not scaled";
  StepReport report = ReportOf(result, batch);
  report.stop = StopRequested();
  report.compute = computed - started;
  report.lags = result.later && MayLag();
  const StepOutcome outcome = exchange_->End(report);
  if (result.later) {
    late_.push_back({batch, outcome});
    if (!exchange_->results().empty()) Settle();
  } else {
    Account(batch.samples, waited, started, computed, WallNow());
    Finish(batch, result, outcome);
  }
}

// Returns true if the result of the step at work is not needed yet.
bool Trainer::MayLag() const {
  // The terminal and the status show results that are about as old as that.
  constexpr double kLongest = 0.1;
  if (config_.timeline || pacer_->paces() || accounts_.step_seconds.empty()) return false;
  const auto steps = static_cast<double>(late_.size() + 1);
  return steps * accounts_.step_seconds.back() < kLongest &&
         ToSeconds(WallNow() - late_since_) < kLongest &&
         !outputs_.LineIsDue(now().step + std::ssize(late_) + 1);
}

// The results of the late steps are there.  Each takes its share of the time since the first began.
void Trainer::Settle() {
  const std::span<const StepResults> results = exchange_->results();
  DT_CHECK(results.size() == late_.size());
  const auto steps = static_cast<Nanos>(late_.size());
  const Nanos total = WallNow() - late_since_ - std::exchange(late_waited_, 0);
  for (size_t i = 0; i < late_.size(); ++i) {
    const auto& [batch, outcome] = late_[i];
    const StepResult result = Net::ResultOf(results[i]);
    const auto at = [&](size_t k) { return late_since_ + total * static_cast<Nanos>(k) / steps; };
    Account(batch.samples, 0, at(i), at(i + 1), at(i + 1));
    StepOutcome known = outcome;
    known.loss_sum = Reducer::OutcomeAlone(ReportOf(result, batch)).loss_sum;
    Finish(batch, result, known);
    if (results[i].non_finite.step == NonFinitePlace::kNone) continue;
    non_finite_ = results[i].non_finite;
    break;  // later steps have changed nothing
  }
  late_.clear();
}

void Trainer::Finish(const BatchCounts& batch, const StepResult& result,
                     const StepOutcome& outcome) {
  trained_.Add(session_->position().rule(), now().step, TrainedOn(result, batch));
  Follow(outcome);
}

void Trainer::Account(int64_t samples, Nanos waited, Nanos started, Nanos computed, Nanos ended) {
  if (RankTimeline* timeline = exchange_->timeline()) {
    timeline->Computed(started, computed, samples);
    timeline->Exposed(computed, ended);
  }
  accounts_.AddStep(samples, waited, started, computed, ended);
}

// Updates the position: by this step of all workers, or by the progress that rank 0 has received.
void Trainer::Follow(const StepOutcome& outcome) {
  RunPosition& position = session_->position();
  if (lockstep_) position.Add(outcome);
  const bool moved = lockstep_ || position.UpdateProgress(exchange_->progress());
  Say(Doing::kTraining);
  if (moved) Log();
}

void Trainer::Log() {
  const RunPosition& position = session_->position();
  outputs_.Step(
      {session_->Here(), position.loss(), learning_rate_.At(position.EpochsBeforeLastBatch()),
       accounts_.SamplesPerSecond(position.samples()), ToSeconds(accounts_.exposed)},
      position.RunEnds(), *session_);
}

// Adds the progress of asynchronous workers since their last report.  Logs it only if it is a whole batch or more; the
// rest is in the line of another step.
void Trainer::ReadBoundary() {
  if (lockstep_) return;
  const int64_t step = now().step;
  if (session_->position().UpdateProgress(exchange_->progress()) && now().step > step) Log();
}

// Does what is due at a boundary.  Returns an exit code if the run is over.
std::optional<ExitCode> Trainer::AtBoundary(const BoundaryState& state) {
  accounts_.clock.Pause(WallNow());
  ReadBoundary();
  if (!non_finite_) session_->position().MoveTo(state.samples_applied);
  ShareTimes(*exchange_, placement_.RoleOf(transport_.rank()), trained_, accounts_, *session_,
             outputs_);
  if (!state.finite) {
    exchange_->Collect(false);
    return Diverge();
  }
  return session_->AtBoundary(state.stop);
}

// Also gathers or estimates the model's batch-norm statistics.
void Trainer::Collect(bool with_solver) {
  exchange_->Collect(with_solver);
  const std::span<float> state = {model_state_.f32(), model_state_.bytes() / sizeof(float)};
  if (state.empty()) return;
  const std::vector<float> own = FloatsOf(state_.arena(), graph_->state().size());
  std::vector<BatchState> estimates;
  if (estimate_samples_ > 0 && HasWorker()) {
    Say(Doing::kEvaluating);
    estimates = EstimateBatches(*net_, *dataset_, *sampler_, estimate_samples_,
                                exchange_->weights().arena(), own, transport_.rank(), workers());
  }
  exchange_->AtBoundary([&](Transport& transport) {
    if (estimate_samples_ > 0) return JoinStates(transport, estimates, state);
    GatherMeanState(transport, own, StateWeights(*sampler_, workers()), state);
  });
}

BoundaryModel Trainer::model() {
  BoundaryModel model{exchange_->HostWeights(), model_state_.f32()};
  const std::span<float* const> solver = exchange_->solver_state();
  const std::vector<std::string> names = config_.solver.solver->StateNames();
  for (size_t i = 0; i < solver.size(); ++i) model.solver[names[i]] = solver[i];
  model.updates = exchange_->updates();
  model.loss_scale = exchange_->loss_scale();
  return model;
}

Evaluation Trainer::Evaluate(Split split, const BestWeights& best) {
  SplitScores mine;
  if (HasWorker()) {
    const auto [weights, state] = best.Or(exchange_->weights().arena(), model_state_.f32());
    mine = ScoreSplit(*net_, *dataset_, split, weights, state, transport_.rank(), workers(),
                      RunSearchOf(split));
  }
  Evaluation result;
  exchange_->AtBoundary(
      [&](Transport& transport) { result = JoinScores(transport, *dataset_, mine); });
  return result;
}

void Trainer::Did(Doing doing, Nanos begun) {
  RankTimeline* const timeline = exchange_->timeline();
  if (timeline == nullptr) return;
  if (doing == Doing::kEvaluating) timeline->Evaluated(begun, WallNow());
  if (doing == Doing::kCheckpointing) timeline->Checkpointed(begun, WallNow());
}

// Writes none if the ranks have no state of their own.
std::vector<std::string> Trainer::WriteRankFiles(const std::filesystem::path& main,
                                                 const TrainingPosition& position) {
  if (!KeepsRankState(config_)) return {};
  RankCheckpoint file = world_;
  file.rank = transport_.rank();
  file.step = position.step;
  file.samples_applied = position.samples_applied;
  file.role = placement_.RoleOf(transport_.rank());
  std::optional<WorkerState> worker;
  if (HasWorker()) {
    worker = {next_batch_ + accounts_.steps, FloatsOf(state_.arena(), graph_->state().size())};
  }
  return dtrain::WriteRankFiles(*exchange_, main, file, worker);
}

// Reports where the first NaN or infinity is, in this rank's gradient or in the weights.
ExitCode Trainer::Diverge() {
  // Null on a rank without a worker, or before its first step.
  const ConstArena gradients = HasWorker() ? exchange_->gradients() : Arena();
  const auto where = non_finite_
                         ? FirstNotFinite(graph_->weights(), *non_finite_)
                         : FirstNotFinite(graph_->weights(), exchange_->HostWeights(), gradients);
  outputs_.Diverged(now(), fmt::format("step {}: NaN or infinity in {} (loss {})", now().step,
                                       where, session_->position().loss()));
  return ExitCode::kDiverged;
}

// Saves the order of events on every rank, if the config asks for it.
void Trainer::SaveRecord(const std::string& weights_sha256) {
  if (!config_.record) return;
  std::vector<std::string> logs;
  exchange_->AtBoundary(
      [&](Transport& transport) { logs = Gather(transport, exchange_->record().bytes()); });
  outputs_.SaveRecord({.config_yaml = config_.effective_yaml,
                       .model_yaml = config_.model.yaml,
                       .plan = plan_,
                       .first_step = session_->position().first().step,
                       .weights = GivenWeights(config_, request_),
                       .weights_sha256 = weights_sha256,
                       .logs = std::move(logs),
                       .node_of = config_.node_of});
}

void Trainer::SaveTimeline() {
  RankTimeline* const timeline = exchange_->timeline();
  if (timeline == nullptr) return;
  const TimelineRank mine{transport_.rank(), placement_.RoleOf(transport_.rank()),
                          timeline_origin_};
  std::vector<std::string> ranks;
  exchange_->AtBoundary(
      [&](Transport& transport) { ranks = Gather(transport, timeline->Pack(mine)); });
  outputs_.SaveTimeline(ranks);
}

Summary Trainer::Summarize(ExitCode code) {
  Summary summary;
  const RankReport mine = accounts_.Report(exchange_->stats());
  exchange_->AtBoundary([&](Transport& transport) {
    GatherReports(transport, mine, workers(), config_.batch, summary);
  });
  summary.weights_sha256 =
      WeightsSha256(ModelLayoutOf(*graph_), exchange_->HostWeights(), model_state_.f32());
  SaveRecord(summary.weights_sha256);
  SaveTimeline();
  if (!root()) return summary;
  if (summary.protocol) summary.protocol->replica_spread = exchange_->spread();
  NameIdleServers(summary);
  DescribeRun(config_, *graph_, plan_, summary);
  DescribeEnd(code, summary);
  session_->position().Describe(summary);
  if (config_.precision == "fp16") {
    summary.skipped_steps = static_cast<int64_t>(exchange_->loss_scale().skipped);
  }
  accounts_.Describe(session_->position().samples(), summary);
  session_->Describe(summary);
  return summary;
}

}  // namespace

TrainResult Train(const RunConfig& config, const TrainRequest& request, Transport& transport) {
  return Trainer(config, request, transport).Run();
}

}  // namespace dtrain
