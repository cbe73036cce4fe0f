#include "framework/train/run_outputs.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/core/timeline_file.h"
#include "framework/evaluate/guessing.h"
#include "framework/launch/status_record.h"
#include "framework/launch/world.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/train/best_weights.h"

namespace dtrain {
namespace {

constexpr std::chrono::seconds kLastWords{10};  // time for the error message of a run that hangs

// Prints the plan in short with -v; plan.json has all of it.
void TellPlan(const ExecutionPlan& plan) {
  log::Debug("collective {}: {}", plan.collective,
             Counted(static_cast<int64_t>(plan.buckets.size()), "bucket"));
  for (const auto& [layer, kernel] : plan.kernels) log::Debug("{} by {}", layer, kernel);
}

}  // namespace

RunOutputs::RunOutputs(const RunConfig& config, bool root)
    : config_(config), root_(root), folder_(config.output) {
  if (!root_) return;
  progress_ = std::make_unique<Progress>(WallNow());
  ticker_ = std::make_unique<Ticker>([this](Nanos now) { progress_->Tick(now); });
}

RunOutputs::~RunOutputs() {
  if (progress_) progress_->End();
}

void RunOutputs::CreateFolder(bool resuming) {
  if (!root_) return;
  for (const std::string& warning : config_.warnings) log::Warning("{}", warning);
  for (const std::string& note : config_.notes) log::Info("{}", note);
  lock_.emplace(folder_.Create(resuming));
}

void RunOutputs::Open(const Graph& graph, const Dataset& dataset, const ExecutionPlan& plan,
                      const StartPoint& start, int64_t last_step) {
  const TrainingPosition& first = start.position;
  so_far_ = start.so_far;
  last_step_ = first.step;
  results_ = RunResults(graph.metric_names(), config_.stop);
  if (!root_) return;
  if (PlacementOf(config_).ranks() == 1) {
    watch_.emplace(config_.stall_seconds, [this](const std::string& what) { StepHangs(what); });
  }
  folder_.WritePlan(plan);  // the first file: it marks the folder as a run's
  folder_.WriteConfig(config_.effective_yaml);
  const bool resumed = first.step > 0;
  kept_step_ = start.KeptStep();
  metrics_ = std::make_unique<MetricsWriter>(folder_.metrics(), kept_step_, so_far_.evaluations);
  if (config_.tensorboard) {
    tensorboard_ = std::make_unique<TensorBoardWriter>(folder_.tensorboard(), kept_step_);
  }
  if (resumed) GoOnFrom(start);
  rank_times_ =
      std::make_unique<RankTimesWriter>(folder_.ranks(), kept_step_, so_far_.training_seconds);
  progress_->Begin({config_.epochs, last_step, config_.batch}, {first.epoch + 1, first.step});
  Summary run;
  DescribeRun(config_, graph, plan, run);
  log::Info("{} on {}: {} parameters, {} of {} ({}), {}, batch {}, {} -> {}", graph.name(),
            config_.data.name, graph.weights().size(), WorkersText(run),
            Counted(plan.threads, "thread"), plan.isa, StrategyText(run), config_.batch,
            Counted(last_step, "step"), folder_.path().string());
  if (const std::string frozen = FrozenText(graph); !frozen.empty()) {
    log::Info("frozen: {}", frozen);
  }
  TellDevice(config_);
  TellData(config_, dataset);
  TellPlan(plan);
  if (plan.precision == "bf16" && !ComputesInBf16(plan)) {
    log::Warning(
        "precision bf16 changes nothing: no convolution of this model has channels in multiples of "
        "32");
  }
  if (resumed) log::Info("resumed after step {}", first.step);
}

// Continues the results from before a resume.
void RunOutputs::GoOnFrom(const StartPoint& start) {
  logged_loss_ = so_far_.loss;
  RecallEvaluations(so_far_, start.position.step, results_);
  if (config_.checkpoint.keep_best && results_.best()) {
    BringBest(BestFile(), start.file, *results_.best());
  }
}

GradientStatistics* RunOutputs::StudyGradients(int64_t steps_before) {
  if (!root_ || config_.statistics_every == 0) return nullptr;
  statistics_ = std::make_unique<StatisticsWithFile>(config_.statistics_every, folder_.gradients());
  if (!kept_step_) statistics_->file.KeepNoLines();
  statistics_->statistics.BeginBehind(steps_before);
  return &statistics_->statistics;
}

void RunOutputs::SaveProfile(const ModelProfile& profile) {
  if (root_) folder_.WriteProfile(profile);
}

void RunOutputs::PlannedAnew(const ExecutionPlan& plan) {
  if (root_) folder_.WritePlan(plan);
}

void RunOutputs::Does(Doing doing, const TrainingPosition& position) {
  if (!root_) return;
  if (watch_) watch_->Pause();
  progress_->Do(doing, WallNow());
  step_.store(position.step, std::memory_order_relaxed);
  epoch_.store(position.epoch, std::memory_order_relaxed);
  if (watch_ && doing == Doing::kTraining) watch_->StepBegins();
}

// The watch's thread calls this.  The trainer's thread may hang anywhere; it is left alone.
void RunOutputs::StepHangs(const std::string& what) const {
  // The disk or the terminal may block this thread, too, so a third thread ends the process.
  std::thread([] {
    std::this_thread::sleep_for(kLastWords);
    std::_Exit(static_cast<int>(ExitCode::kStalled));
  }).detach();
  TrainingPosition position;
  position.step = step_.load(std::memory_order_relaxed);
  position.epoch = epoch_.load(std::memory_order_relaxed);
  const StalledError error(fmt::format("after step {}: {}", position.step, what),
                           "what it waits for hangs or is very slow; stall_seconds sets the limit");
  TellError(error);
  Failed(0, position, error);
  std::_Exit(static_cast<int>(error.code()));
}

void RunOutputs::Failed(int rank, const TrainingPosition& position, const Error& error) const {
  // The usage error may be that the folder belongs to another run.
  if (error.code() == ExitCode::kUsage) return;
  try {
    // Writes no file if the run failed before it began: the error is on stderr already.
    if (!std::filesystem::exists(folder_.config())) return;
    folder_.WriteError({rank, HostName(), ::getpid(), static_cast<int>(error.code()),
                        position.epoch, position.step, error.what(), error.hint()});
  } catch (const std::exception& second) {
    log::Warning("the error could not be recorded: {}", second.what());
  }
}

void RunOutputs::Step(const StepInfo& info) {
  if (!root_) return;
  if (watch_) watch_->Pause();
  ReportProgress(info);
  if (watch_) watch_->StepBegins();
}

void RunOutputs::ReportProgress(const StepInfo& info) {
  const int64_t step = info.at.step;
  // A resumed run logs the same steps as an undisturbed one.
  const bool due = info.last || step <= config_.log_first_steps ||
                   step / config_.log_every_steps > last_step_ / config_.log_every_steps;
  last_step_ = step;
  if (due) slowest_ = SlowestRank(ReadStatusRecords(StatusFolder()));
  progress_->Update(ProgressPoint{info.at.epoch + 1, step, info.loss, slowest_}, WallNow());
  if (!due) return;
  const StepMetrics metrics{info.at, info.loss, info.learning_rate, info.samples_per_second,
                            info.exposed_seconds};
  metrics_->Write(metrics);
  logged_loss_ = metrics.loss;
  if (tensorboard_) tensorboard_->Write(metrics);
}

void RunOutputs::RankDid(int64_t step, const RankTimes& times) {
  if (!root_) return;
  so_far_.epoch.Add(times.epoch);
  rank_times_->Write(step, times);
}

void RunOutputs::Evaluated(const MetricsPoint& at, Split split, const Evaluation& evaluation,
                           double seconds) {
  if (!root_) return;
  const bool validation = split == Split::kValidation;
  const EvaluationMetrics metrics = results_.Note(at, split, evaluation, seconds);
  metrics_->Write(metrics);
  if (tensorboard_) tensorboard_->Write(metrics);
  std::string where = fmt::format("epoch {}", at.epoch + 1);
  if (config_.evaluate.every_steps > 0) where += fmt::format(", step {}", at.step);
  log::Info("{}: {} {}{}", where, validation ? "validation" : "test",
            Describe(evaluation, results_.metric_names()),
            WeightsText(results_.EpochOf(evaluation), evaluation.step));
}

std::filesystem::path RunOutputs::CheckpointFile(int64_t step) const {
  return folder_.checkpoints() / CheckpointName(step);
}

CheckpointInfo RunOutputs::InfoOf(const TrainingPosition& position,
                                  const CheckpointSource& source) const {
  return {position,
          config_.seed,
          source.graph.name(),
          config_.solver.name,
          config_.effective_yaml,
          ToJson(source.plan),
          SourceRevision(),
          source.layout.text,
          source.rank_files,
          source.layout.images,
          config_.model.yaml,
          {},
          source.layout.data_hashes};
}

void RunOutputs::KeepBest(Split split, const TrainingPosition& position,
                          const CheckpointSource& source) {
  if (!root_ || split != Split::kValidation || !config_.checkpoint.keep_best) return;
  if (!results_.best() || results_.best()->step != position.step) return;
  CheckpointInfo info = InfoOf(position, source);
  info.plan_json.clear();  // a file without a plan is weights alone, not a checkpoint
  MakeFolder(folder_.checkpoints());
  WriteCheckpoint(
      BestFile(),
      {info, ModelLayoutOf(source.graph), source.exchange.HostWeights(), {}, source.state});
}

std::filesystem::path RunOutputs::BestFile() const { return folder_.checkpoints() / kBestName; }

void RunOutputs::Save(const MetricsPoint& at, const TrainingPosition& position,
                      const CheckpointSource& source, bool at_epoch_end) {
  if (!root_) return;
  const Nanos started = WallNow();
  StepCount steps = so_far_.steps;
  steps.at_epoch_end = at_epoch_end;
  CheckpointInfo info = InfoOf(position, source);
  info.so_far = ToJson(RunSoFar{.seconds = at.seconds,
                                .training_seconds = at.training_seconds.value_or(0),
                                .epoch = so_far_.epoch,
                                .loss = logged_loss_,
                                .steps = steps,
                                .evaluations = results_.lines()});
  const ModelLayout layout = ModelLayoutOf(source.graph);
  CheckpointView view{info, layout, source.exchange.HostWeights(), {}, source.state};
  const std::vector<std::string> names = config_.solver.solver->StateNames();
  for (size_t i = 0; i < names.size(); ++i)
    view.solver[names[i]] = source.exchange.solver_state()[i];
  const CheckpointFolder folder(folder_.checkpoints(), static_cast<int>(config_.checkpoint.keep));
  const std::string file = folder.Save(view).filename().string();
  metrics_->Write(CheckpointMetrics{at, file, ToSeconds(WallNow() - started)});
}

void RunOutputs::EndsEarly() {
  if (root_) log::Info("the run ends here: {}", results_.WhyOver());
}

void RunOutputs::Diverged(const TrainingPosition& position, const std::string& what) {
  if (!root_) return;
  const bool kept = !CheckpointFolder(folder_.checkpoints(), 1).List().empty();
  const DivergedError error(
      what, fmt::format(
                "{}; a lower solver.lr, solver.clip_norm or solver.warmup_epochs may help",
                kept ? "the last good checkpoint is kept" : "there is no checkpoint from before"));
  TellError(error);
  Failed(0, position, error);
}

void RunOutputs::SaveRecord(const RunRecord& record) {
  if (root_) WriteRecord(folder_.record(), record);
}

void RunOutputs::SaveTimeline(const std::vector<std::string>& ranks) {
  if (!root_) return;
  TimelineFile file(folder_.timeline());
  for (const std::string& rank : ranks) file.Add(rank);
  file.Finish();
}

void RunOutputs::Finish(const Summary& summary) {
  if (!root_) return;
  folder_.WriteSummary(summary);
  progress_->End();
  WarnOfGuessing(summary);
}

}  // namespace dtrain
