// SimulatedRun: a config's run in virtual time - numeric (the net really computes the gradients) or
// a ghost (sizes only, from a model profile) - and the replay of a recorded one.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "framework/runtime/judge/run_evaluation.h"
#include "framework/runtime/results/gradients_file.h"
#include "framework/runtime/results/run_folder.h"
#include "framework/runtime/results/run_record.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/results/trained_epoch.h"
#include "framework/runtime/run/rank_state.h"
#include "framework/runtime/run/run_position.h"
#include "framework/runtime/run/start_point.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/simulate/numeric_engine.h"
#include "framework/runtime/weights/checkpoint.h"
#include "framework/sim/simulation.h"

namespace dtrain {

// The profile of a model that has not been timed: parameters and FLOPs of one sample.
ModelProfile ProfileByFlops(const Graph& graph);

class SimulatedRun {
 public:
  // `profile`: layer times; without it those of FLOPs.  With `numeric` the gradients are computed.
  // `data`: the config's data set where it is loaded already; a numeric run loads it itself.
  SimulatedRun(const RunConfig& config, const std::optional<ModelProfile>& profile, bool numeric,
               std::shared_ptr<Dataset> data = nullptr);
  ~SimulatedRun();

  // Recorded step durations in seconds, by worker; see ComputeModel::UseTrace.
  void UseTrace(std::vector<std::vector<double>> seconds) { setup_.trace = std::move(seconds); }

  // Numeric runs: writes checkpoints to this folder as the config says (checkpoint.every_...), and
  // goes on as --resume asks for (checkpoint_folder.h).  Returns the step where Run will go on, if it
  // does.  Runs whose boundaries are the same have the same bits, and the same virtual time, whether or not
  // they were interrupted.
  std::optional<int64_t> KeepCheckpoints(const std::filesystem::path& output,
                                         const std::string& resume);
  // Opens metrics.jsonl of that folder for the run that KeepCheckpoints has found.
  std::unique_ptr<MetricsWriter> ContinueMetrics() const;

  // Numeric runs, where the config asks for it: what worker 0's gradients are like goes to
  // gradients.jsonl in this folder ("": there is none).  Throws ConfigError where it cannot.
  void StudyGradients(const std::filesystem::path& output);

  // True, with a line that says so, where the run that KeepCheckpoints has found was completed before.
  bool IsFinished() const;

  // Called after each evaluation of a numeric run with the epochs done; its seconds are virtual.
  using EvaluationCallback =
      std::function<void(double epochs, const MetricsPoint& at, Split, const Evaluation&)>;
  Summary Run(const EvaluationCallback& on_evaluation = {});
  // While it runs, for another thread: how far it is, in steps of all workers together, and how many
  // it takes where it does not end early.
  double steps_done() const {
    return static_cast<double>(progress_.steps) / static_cast<double>(config_.workers);
  }
  double steps() const {
    return static_cast<double>(progress_.last_samples) / static_cast<double>(config_.batch);
  }
  Nanos virtual_time() const { return progress_.time; }
  // The timelines of the last Run, where the config asks for them (RankTimeline::Pack of each rank).
  const std::vector<std::string>& timelines() const { return timelines_; }

  const RunResults& results() const { return results_; }  // of the evaluations so far
  const SimulationSetup& setup() const { return setup_; }
  // The gradients, when each is ready, and how long a sum takes: as the profile has measured it for this
  // config, else on the cluster.
  LayerGradients PlannedLayerGradients() const;
  const Graph& graph() const { return *graph_; }  // of a config with a model

 private:
  void DescribeModel(const std::optional<ModelProfile>& profile, const BoundarySchedule& rule);
  void PlanBuckets();
  void MakeEngine();
  void GoOn();
  bool AtBoundary(const BoundaryState& state, Nanos now, const float* weights,
                  const EvaluationCallback& on_evaluation);
  bool Evaluate(const BoundaryPoint& point, const MetricsPoint& at, const float* weights,
                const EvaluationCallback& on_evaluation);
  void CountEpochs();
  void CountEpochSamples(int64_t samples_applied);
  void Save(TrainingPosition position, const MetricsPoint& at, bool over, bool at_epoch_end,
            const float* weights);
  std::string SaveRank(const std::filesystem::path& main, const TrainingPosition& position,
                       Rank rank);
  Summary Summarize(const SimulationResult& result) const;

  const RunConfig& config_;
  std::shared_ptr<Dataset> data_;  // null for a ghost
  std::unique_ptr<Graph> graph_;   // null for a ghost of a profile alone
  ModelLayout layout_;             // of checkpoints
  ArenaLayout ghost_layout_;
  ExecutionPlan plan_;
  std::unique_ptr<NumericEngine> engine_;
  SimulationSetup setup_;
  std::unique_ptr<StatisticsWithFile> statistics_;
  std::vector<std::string> timelines_;
  RunResults results_;
  TrainingPosition boundary_;           // at the last boundary
  std::vector<EpochCounter> counters_;  // of the workers
  TrainedEpoch trained_;                // of all of them

  std::optional<RunFolder> folder_;             // of checkpoints; none: there are none
  StartPoint start_;                            // where it goes on
  RankCheckpoint world_;                        // of rank files
  std::map<Rank, StateRecord> actors_, hosts_;  // with which the ranks begin, where they go on
  int64_t saved_samples_ = 0;
  Simulation* simulation_ = nullptr;  // that runs
  SimulationProgress progress_;
};

// Repeats a recorded run; `config` is the record's own.  Says on stderr why the bits may differ
// where this machine cannot follow the plan.  Returns the weights' SHA-256.
std::string ReplayRecord(const RunConfig& config, const RunRecord& record);

}  // namespace dtrain
