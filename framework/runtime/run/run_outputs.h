// RunOutputs: what rank 0 writes and shows while a run goes on - run folder, metrics, checkpoints,
// progress.  On other ranks every call does nothing.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "framework/core/error.h"
#include "framework/core/execution_plan.h"
#include "framework/core/time.h"
#include "framework/exchange/exchange.h"
#include "framework/nn/graph.h"
#include "framework/runtime/judge/run_evaluation.h"
#include "framework/runtime/launch/status_record.h"
#include "framework/runtime/launch/step_watch.h"
#include "framework/runtime/results/gradients_file.h"
#include "framework/runtime/results/metrics.h"
#include "framework/runtime/results/progress.h"
#include "framework/runtime/results/rank_times.h"
#include "framework/runtime/results/run_folder.h"
#include "framework/runtime/results/run_record.h"
#include "framework/runtime/results/run_so_far.h"
#include "framework/runtime/results/tensorboard.h"
#include "framework/runtime/run/start_point.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// Everything a checkpoint is made of, borrowed.
struct CheckpointSource {
  const Graph& graph;
  const ExecutionPlan& plan;
  Exchange& exchange;
  const float* state;
  const ModelLayout& layout;                   // with what it knows of its data
  const std::vector<std::string>& rank_files;  // hashes, by rank
};

class RunOutputs {
 public:
  RunOutputs(const RunConfig& config, bool root);
  ~RunOutputs();
  RunOutputs(const RunOutputs&) = delete;

  // Called before anything is computed: the folder can be written, and is no other run's from now on.
  void CreateFolder(bool resuming);
  // Called once the plan is settled; the run begins at `start` and will end at `last_step`.
  void Open(const Graph& graph, const ExecutionPlan& plan, const StartPoint& start,
            int64_t last_step);

  // Makes the study of the gradients of a worker that has taken so many steps before; null where there is none.
  GradientStatistics* StudyGradients(int64_t steps_before);
  // Write the times that the run was planned by, for other runs, and the plan that is in force from now on.
  void SaveProfile(const ModelProfile& profile);
  void PlannedAnew(const ExecutionPlan& plan);

  // Hears what the run does from now on, and where it stands.  A step that hangs in a run of one rank is noticed here,
  // since no other rank can: it is told and the process ends with exit code 7.
  void Does(Doing doing, const TrainingPosition& position);

  struct StepInfo {
    MetricsPoint at;
    double loss = 0;
    double learning_rate = 0;
    double samples_per_second = 0;
    double exposed_seconds = 0;  // of this step
    bool last = false;           // of the run: logged in any case
  };
  void Step(const StepInfo& info);
  // Called for each rank at the rest of this step.
  void RankDid(int64_t step, const RankTimes& times);
  // `split` was evaluated; a set without a validation split is judged by its test split.
  void Evaluated(const MetricsPoint& at, Split split, const Evaluation& evaluation, double seconds);
  // The main file of a step.
  std::filesystem::path CheckpointFile(int64_t step) const;
  // `at_epoch_end`: BoundarySchedule::PausedForEpoch.
  void Save(const MetricsPoint& at, const TrainingPosition& position,
            const CheckpointSource& source, bool at_epoch_end);
  // Writes BestFile after an evaluation that was the best so far (checkpoint.keep_best).
  void KeepBest(Split split, const TrainingPosition& position, const CheckpointSource& source);
  std::filesystem::path BestFile() const;
  // Any rank writes its errors/rank-N.json, once the run has begun.
  void Failed(int rank, const TrainingPosition& position, const Error& error) const;
  void Diverged(const TrainingPosition& position, const std::string& what);
  void SaveRecord(const RunRecord& record);
  void SaveTimeline(const std::vector<std::string>& ranks);  // RankTimeline::Pack of each
  void Finish(const Summary& summary);

  const RunFolder& folder() const { return folder_; }
  const RunResults& results() const { return results_; }  // of the evaluations told of
  // The loss of the last step in metrics.jsonl, which may have been before a resume.
  const std::optional<double>& logged_loss() const { return logged_loss_; }
  // The time before the resume, and the epoch at hand.
  const RunSoFar& so_far() const { return so_far_; }
  // Says why the run ends before its last epoch.
  void EndsEarly();

 private:
  void ReportProgress(const StepInfo& info);
  [[noreturn]] void StepHangs(const std::string& what) const;
  CheckpointInfo InfoOf(const TrainingPosition& position, const CheckpointSource& source) const;
  void GoOnFrom(const StartPoint& start);

  const RunConfig& config_;
  const bool root_;
  const RunFolder folder_;
  std::optional<RunLock> lock_;
  int64_t last_step_ = 0;             // that Step was called with
  std::optional<int64_t> kept_step_;  // StartPoint::KeptStep
  int slowest_ = -1;
  RunSoFar so_far_;
  std::optional<double> logged_loss_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<RankTimesWriter> rank_times_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;  // where the config asks for it
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Ticker> ticker_;  // of the progress
  std::unique_ptr<StatisticsWithFile> statistics_;
  RunResults results_;
  std::atomic<int64_t> step_ = 0, epoch_ = 0;  // as the run was told to stand
  std::optional<StepWatch> watch_;             // the last one: its thread uses others
};

}  // namespace dtrain
