// RunOutputs: the output of rank 0 during a run: run folder, metrics, checkpoints and progress.  On other ranks every
// call does nothing.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "framework/checkpoint/checkpoint.h"
#include "framework/core/error.h"
#include "framework/core/execution_plan.h"
#include "framework/core/time.h"
#include "framework/evaluate/run_evaluation.h"
#include "framework/exchange/exchange.h"
#include "framework/launch/status_record.h"
#include "framework/launch/step_watch.h"
#include "framework/nn/graph.h"
#include "framework/results/gradients_file.h"
#include "framework/results/metrics.h"
#include "framework/results/progress.h"
#include "framework/results/rank_times.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_record.h"
#include "framework/results/run_so_far.h"
#include "framework/results/tensorboard.h"
#include "framework/setup/run_config.h"
#include "framework/train/start_point.h"

namespace dtrain {

// Refers to the parts of a checkpoint, borrowed.
struct CheckpointSource {
  const Graph& graph;
  const ExecutionPlan& plan;
  Exchange& exchange;
  const float* state;
  const ModelLayout& layout;                   // including the properties of its data
  const std::vector<std::string>& rank_files;  // hashes of the rank files, by rank
};

class RunOutputs {
 public:
  RunOutputs(const RunConfig& config, bool root);
  ~RunOutputs();
  RunOutputs(const RunOutputs&) = delete;

  // Makes the run folder and locks it for this run.  The trainer calls this before anything is computed.
  void CreateFolder(bool resuming);
  // Opens the files of the run.  The trainer calls this once the plan is decided; the run begins at `start` and will
  // end at `last_step`.
  void Open(const Graph& graph, const Dataset& dataset, const ExecutionPlan& plan,
            const StartPoint& start, int64_t last_step);

  // Makes the collector of gradient statistics for a worker that has taken so many steps before.  Returns null if the
  // config asks for none.
  GradientStatistics* StudyGradients(int64_t steps_before);
  // Writes the measured times by which the run was planned, for use by other runs.
  void SaveProfile(const ModelProfile& profile);

  // Reports what the run does from now on, and its position.  In a run of one rank, no other rank can notice a step
  // that hangs: a watch prints the error then and ends the process with exit code 7.
  void Does(Doing doing, const TrainingPosition& position);

  struct StepInfo {
    MetricsPoint at;
    double loss = 0;
    double learning_rate = 0;
    double samples_per_second = 0;
    double exposed_seconds = 0;  // seconds of this step spent waiting
    bool last = false;           // the last step of the run; always logged
  };
  void Step(const StepInfo& info);
  // Writes the times of one rank up to the boundary at this step; called once for each rank.
  void RankDid(int64_t step, const RankTimes& times);
  // Writes the result of an evaluation.  In a set without a validation split, the test split also decides which
  // evaluation is the best.
  void Evaluated(const MetricsPoint& at, Split split, const Evaluation& evaluation, double seconds);
  // Returns the path of the main checkpoint file of a step.
  std::filesystem::path CheckpointFile(int64_t step) const;
  // Writes a checkpoint.  `at_epoch_end` is BoundarySchedule::PausedForEpoch.
  void Save(const MetricsPoint& at, const TrainingPosition& position,
            const CheckpointSource& source, bool at_epoch_end);
  // Writes BestFile if this evaluation was the best so far (checkpoint.keep_best).
  void KeepBest(Split split, const TrainingPosition& position, const CheckpointSource& source);
  std::filesystem::path BestFile() const;
  // Writes errors/rank-N.json.  Any rank may call it, once the run has begun.
  void Failed(int rank, const TrainingPosition& position, const Error& error) const;
  void Diverged(const TrainingPosition& position, const std::string& what);
  void SaveRecord(const RunRecord& record);
  // `ranks` holds RankTimeline::Pack of each rank.
  void SaveTimeline(const std::vector<std::string>& ranks);
  void Finish(const Summary& summary);

  const RunFolder& folder() const { return folder_; }
  const RunResults& results() const { return results_; }  // of the evaluations passed to Evaluated
  // Returns the loss of the last step in metrics.jsonl, which may be from before a resume.
  const std::optional<double>& logged_loss() const { return logged_loss_; }
  // Returns the time before the resume, and the results of the current epoch.
  const RunSoFar& so_far() const { return so_far_; }
  // Prints why the run ends before its last epoch.
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
  int64_t last_step_ = 0;             // the last step passed to Step
  std::optional<int64_t> kept_step_;  // StartPoint::KeptStep
  int slowest_ = -1;
  RunSoFar so_far_;
  std::optional<double> logged_loss_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<RankTimesWriter> rank_times_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;  // null unless the config asks for it
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Ticker> ticker_;  // redraws the progress line
  std::unique_ptr<StatisticsWithFile> statistics_;
  RunResults results_;
  std::atomic<int64_t> step_ = 0, epoch_ = 0;  // the position last passed to Does
  std::optional<StepWatch> watch_;             // declared last: its thread uses other members
};

}  // namespace dtrain
