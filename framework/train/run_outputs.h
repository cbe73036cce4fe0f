// RunOutputs: what rank 0 of a real run writes beside the results of its session (run_session.h): the folder, the plan,
// times of ranks, errors, and the progress on the terminal.  On other ranks every call does nothing.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "framework/core/error.h"
#include "framework/core/execution_plan.h"
#include "framework/core/time.h"
#include "framework/launch/status_record.h"
#include "framework/launch/step_watch.h"
#include "framework/nn/graph.h"
#include "framework/results/gradients_file.h"
#include "framework/results/metrics.h"
#include "framework/results/progress.h"
#include "framework/results/rank_times.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_record.h"
#include "framework/setup/run_config.h"
#include "framework/train/run_session.h"

namespace dtrain {

class RunOutputs {
 public:
  RunOutputs(const RunConfig& config, bool root);
  ~RunOutputs();
  RunOutputs(const RunOutputs&) = delete;

  // Makes the run folder and locks it for this run.  The trainer calls this before anything is computed.
  void CreateFolder(bool resuming);
  // Opens the files of the run, those of its session included, and prints how it begins.  The trainer calls this once the
  // plan is decided; the run begins at `start`.
  void Open(const Graph& graph, const Dataset& dataset, const ExecutionPlan& plan,
            const StartPoint& start, RunSession& session);

  // Makes the collector of gradient statistics for a worker that has taken so many steps before.  `fresh`: the file
  // begins anew.  Returns null if the config asks for none.
  GradientStatistics* StudyGradients(int64_t steps_before, bool fresh);
  // Writes the measured times by which the run was planned, for use by other runs.
  void SaveProfile(const ModelProfile& profile);

  // Reports what the run does from now on, and its position.  In a run of one rank, no other rank can notice a step
  // that hangs: a watch prints the error then and ends the process with exit code 7.
  void Does(Doing doing, const TrainingPosition& position);

  // Reports a step, with the rank that is slowest.  Writes its line if one is due; that of the `last` step of the run
  // always is.
  void Step(const StepMetrics& metrics, bool last, RunSession& session);
  // True if the line of this step is due.
  bool LineIsDue(int64_t step) const;
  // Writes the times of one rank up to the boundary at this step; called once for each rank.
  void RankDid(int64_t step, const RankTimes& times);
  // Writes errors/rank-N.json.  Any rank may call it, once the run has begun.
  void Failed(int rank, const TrainingPosition& position, const Error& error) const;
  void Diverged(const TrainingPosition& position, const std::string& what);
  void SaveRecord(const RunRecord& record);
  // `ranks` holds RankTimeline::Pack of each rank.
  void SaveTimeline(const std::vector<std::string>& ranks);
  void Finish(const Summary& summary);

  const RunFolder& folder() const { return folder_; }

 private:
  void ReportProgress(const StepMetrics& metrics, bool last, RunSession& session);
  [[noreturn]] void StepHangs(const std::string& what) const;

  const RunConfig& config_;
  const bool root_;
  const RunFolder folder_;
  std::optional<RunLock> lock_;
  int64_t last_step_ = 0;  // the last step passed to Step
  int slowest_ = -1;
  std::unique_ptr<RankTimesWriter> rank_times_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Ticker> ticker_;  // redraws the progress line
  std::unique_ptr<StatisticsWithFile> statistics_;
  std::atomic<int64_t> step_ = 0, epoch_ = 0;  // the position last passed to Does
  std::optional<StepWatch> watch_;             // declared last: its thread uses other members
};

}  // namespace dtrain
