// SimulatedRun: runs a config in virtual time, and replays recorded runs.  A numeric simulation really computes the
// gradients; a ghost simulation only has sizes, from a model profile.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "framework/checkpoint/checkpoint.h"
#include "framework/results/gradients_file.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_record.h"
#include "framework/results/summary.h"
#include "framework/setup/run_config.h"
#include "framework/sim/simulation.h"
#include "framework/simulate/numeric_engine.h"
#include "framework/train/rank_state.h"
#include "framework/train/run_session.h"
#include "framework/train/start_point.h"

namespace dtrain {

// Returns the profile of a model that has not been timed: parameters and FLOPs of one sample.
ModelProfile ProfileByFlops(const Graph& graph);

class SimulatedRun : public RunHost {
 public:
  // `profile` gives the layer times; without it, they follow from FLOPs.  `numeric`: the gradients are computed.
  // `data` is the config's data set if it is loaded already; otherwise a numeric run loads it.
  SimulatedRun(const RunConfig& config, const std::optional<ModelProfile>& profile, bool numeric,
               std::shared_ptr<Dataset> data = nullptr);
  ~SimulatedRun() override;

  // Uses recorded step durations in seconds, a list for each worker; see ComputeModel::UseTrace.
  void UseTrace(std::vector<std::vector<double>> seconds) { setup_.trace = std::move(seconds); }

  // Prints no evaluation.
  void BeQuiet() { tells_ = false; }

  // Numeric runs: writes metrics.jsonl, the files of TensorBoard and the best weights to this folder.
  void WriteTo(const std::filesystem::path& output) { folder_.emplace(output); }
  // Does so, writes checkpoints there as the config says (checkpoint.every_...), and resumes as `resume`, the value of
  // --resume, asks for (checkpoint_folder.h).  Returns the step from which Run will continue, or none if it begins anew.
  // Runs with the same boundaries have the same bits and the same virtual time, whether or not they were interrupted.
  std::optional<int64_t> KeepCheckpoints(const std::filesystem::path& output,
                                         const std::string& resume);

  // Numeric runs, if the config asks for it: writes statistics of worker 0's gradients to gradients.jsonl in this
  // folder ("": there is none).  Throws ConfigError if that is impossible.
  void StudyGradients(const std::filesystem::path& output);

  // Returns true, and prints so, if the run that KeepCheckpoints found was completed before.
  bool IsFinished() const;

  // Called after each evaluation of a numeric run; the seconds in `at` are virtual.
  using EvaluationCallback = std::function<void(const MetricsPoint& at, Split, const Evaluation&)>;
  Summary Run(const EvaluationCallback& on_evaluation = {});
  // The progress of a run, for another thread: the steps done by the average worker, and the steps of the whole run
  // unless it ends early.
  double steps_done() const {
    return static_cast<double>(progress_.steps) / static_cast<double>(config_.workers);
  }
  double steps() const {
    return static_cast<double>(progress_.last_samples) / static_cast<double>(config_.batch);
  }
  Nanos virtual_time() const { return progress_.time; }
  // The timelines of the last Run, if the config asks for them (RankTimeline::Pack of each rank).
  const std::vector<std::string>& timelines() const { return timelines_; }

  const SimulationSetup& setup() const { return setup_; }
  // Returns the execution plan of the run (plan.json), with the compressor's cost.
  const ExecutionPlan& plan() const { return plan_; }
  // Returns the layer gradients with their ready times and the time of an all-reduce: as the profile measured it for
  // this config, else as simulated for the cluster.
  LayerGradients PlannedLayerGradients() const;
  const Graph& graph() const { return *graph_; }       // requires a config with a model
  const Dataset* data() const { return data_.get(); }  // null unless gradients are computed

 private:
  Seconds Now() const override { return {ToSeconds(now_), ToSeconds(now_)}; }
  void Collect(bool with_solver) override;
  BoundaryModel model() override;
  std::string FromRoot(const std::function<std::string()>& text) override { return text(); }
  Evaluation Evaluate(Split split, const BestWeights& best) override;
  std::vector<std::string> WriteRankFiles(const std::filesystem::path& main,
                                          const TrainingPosition& position) override;
  void Evaluated(const MetricsPoint& at, Split split, const Evaluation& evaluation) override {
    if (on_evaluation_) on_evaluation_(at, split, evaluation);
  }

  void DescribeModel(const std::optional<ModelProfile>& profile, const BoundarySchedule& rule);
  void DecideCost(const std::optional<ModelProfile>& profile);
  void PlanBuckets();
  void MakeEngine();
  void GoOn();
  void BeginSession();
  bool AtBoundary(const BoundaryState& state, Nanos now, const float* weights);
  void CountEpochs();
  void CountEpochSamples(int64_t samples_applied);
  std::string SaveRank(const std::filesystem::path& main, const TrainingPosition& position,
                       Rank rank);
  Summary Summarize(const SimulationResult& result) const;

  const RunConfig& config_;
  std::shared_ptr<Dataset> data_;  // null for a ghost
  std::unique_ptr<Graph> graph_;   // null for a ghost of a profile alone
  ModelLayout layout_;             // layout of checkpoints
  ArenaLayout ghost_layout_;
  ExecutionPlan plan_;
  std::unique_ptr<NumericEngine> engine_;
  SimulationSetup setup_;
  std::unique_ptr<StatisticsWithFile> statistics_;
  std::vector<std::string> timelines_;
  std::vector<EpochCounter> counters_;  // one for each worker
  bool tells_ = true;
  EvaluationCallback on_evaluation_;
  std::optional<RunSession> session_;  // of a numeric run

  // The model at the present boundary.
  Nanos now_ = 0;
  const float* weights_ = nullptr;
  std::vector<float> state_;  // batch-norm statistics
  std::map<std::string, std::vector<float>> solver_;

  std::optional<RunFolder> folder_;             // none: nothing is written
  bool saves_ = false;                          // checkpoints are written
  StartPoint start_;                            // the start of a resumed run
  RankCheckpoint world_;                        // this run's properties, for rank files
  std::map<Rank, StateRecord> actors_, hosts_;  // saved states of the ranks of a resumed run
  Simulation* simulation_ = nullptr;            // the simulation in progress
  SimulationProgress progress_;
};

// Repeats a recorded run; `config` is the record's own.  Warns on stderr if this machine cannot follow the plan, so
// that bits may differ.  Returns the weights' SHA-256.
std::string ReplayRecord(const RunConfig& config, const RunRecord& record);

}  // namespace dtrain
