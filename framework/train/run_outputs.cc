#include "framework/train/run_outputs.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/log.h"
#include "framework/core/process.h"
#include "framework/core/text.h"
#include "framework/core/timeline_file.h"
#include "framework/evaluate/guessing.h"
#include "framework/launch/status_record.h"
#include "framework/launch/world.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"

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
                      const StartPoint& start, RunSession& session) {
  const TrainingPosition& first = start.position;
  last_step_ = first.step;
  if (!root_) return;
  if (PlacementOf(config_).ranks() == 1) {
    watch_.emplace(config_.stall_seconds, [this](const std::string& what) { StepHangs(what); });
  }
  folder_.WritePlan(plan);  // the first file: it marks the folder as a run's
  folder_.WriteConfig(config_.effective_yaml);
  session.Open(start);
  rank_times_ = std::make_unique<RankTimesWriter>(folder_.ranks(), session.kept_step(),
                                                  session.so_far().training_seconds);
  const int64_t last_step = session.position().last_step();
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
  if (first.step > 0) log::Info("resumed after step {}", first.step);
}

GradientStatistics* RunOutputs::StudyGradients(int64_t steps_before, bool fresh) {
  if (!root_ || config_.statistics_every == 0) return nullptr;
  statistics_ = std::make_unique<StatisticsWithFile>(config_.statistics_every, folder_.gradients());
  if (fresh) statistics_->file.KeepNoLines();
  statistics_->statistics.BeginBehind(steps_before);
  return &statistics_->statistics;
}

void RunOutputs::SaveProfile(const ModelProfile& profile) {
  if (root_) folder_.WriteProfile(profile);
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

void RunOutputs::Step(const StepMetrics& metrics, bool last, RunSession& session) {
  if (!root_) return;
  if (watch_) watch_->Pause();
  ReportProgress(metrics, last, session);
  if (watch_) watch_->StepBegins();
}

// A resumed run logs the same steps as an undisturbed one.
bool RunOutputs::LineIsDue(int64_t step) const {
  return step <= config_.log_first_steps ||
         step / config_.log_every_steps > last_step_ / config_.log_every_steps;
}

void RunOutputs::ReportProgress(const StepMetrics& metrics, bool last, RunSession& session) {
  const int64_t step = metrics.at.step;
  const bool due = last || LineIsDue(step);
  last_step_ = step;
  if (due) slowest_ = SlowestRank(ReadStatusRecords(StatusFolder()));
  progress_->Update(ProgressPoint{metrics.at.epoch + 1, step, metrics.loss, slowest_}, WallNow());
  if (due) session.Log(metrics);
}

void RunOutputs::RankDid(int64_t step, const RankTimes& times) {
  if (!root_) return;
  rank_times_->Write(step, times);
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
