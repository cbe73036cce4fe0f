// RunSession: the life of a run, real or simulated.  It owns the run's position, and does at each boundary what is due
// there: evaluation, early stop, the best weights and the checkpoint, with their lines in metrics.jsonl and TensorBoard.
// At the end it fills in the results of the summary.  A RunHost trains between the boundaries.
//
// In a real run each rank has a session, and all make the same calls at a boundary; only that of rank 0 decides and
// writes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint.h"
#include "framework/core/error.h"
#include "framework/core/execution_plan.h"
#include "framework/core/time.h"
#include "framework/data/dataset.h"
#include "framework/evaluate/run_evaluation.h"
#include "framework/launch/status_record.h"
#include "framework/nn/graph.h"
#include "framework/results/metrics.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_so_far.h"
#include "framework/results/tensorboard.h"
#include "framework/setup/run_config.h"
#include "framework/train/best_weights.h"
#include "framework/train/rank_state.h"
#include "framework/train/run_position.h"
#include "framework/train/start_point.h"

namespace dtrain {

// The model at a boundary, borrowed until the run goes on.
struct BoundaryModel {
  const float* weights = nullptr;
  const float* state =
      nullptr;  // batch-norm statistics: the workers' mean, or estimated (estimated_state.h)
  LossScale loss_scale = {};
  // --- after Collect with the solver
  std::map<std::string, const float*> solver = {};
  int64_t updates = 0;
};

// RunHost: the process that trains, as its session sees it: a rank of a real run, or a simulation.  All functions but
// Now are called at a boundary.
class RunHost {
 public:
  virtual ~RunHost() = default;

  struct Seconds {
    double run = 0;       // since the run began, over resumes
    double training = 0;  // the same without evaluations and checkpoints
  };
  // Returns the time of the run, virtual in a simulation.
  virtual Seconds Now() const = 0;

  // Brings the model, and with `with_solver` the solver's vectors, to where model() finds them.
  virtual void Collect(bool with_solver) = 0;
  virtual BoundaryModel model() = 0;  // on rank 0
  // Returns the text that rank 0 makes on every rank.  An error of rank 0 is thrown on all.
  virtual std::string FromRoot(const std::function<std::string()>& text) = 0;
  // Evaluates the model, or `best` if it has weights, on a split.  Every rank gets the result.
  virtual Evaluation Evaluate(Split split, const BestWeights& best) = 0;
  // Writes the files of the ranks' own state beside the checkpoint `main`, and returns their hashes on rank 0.
  virtual std::vector<std::string> WriteRankFiles(const std::filesystem::path& main,
                                                  const TrainingPosition& position) = 0;

  // These tell the host what its session begins, what it has done since `begun` (WallNow), and what an evaluation found.
  virtual void Does(Doing doing) {}
  virtual void Did(Doing doing, Nanos begun) {}
  virtual void Evaluated(const MetricsPoint& at, Split split, const Evaluation& evaluation) {}
};

// Holds what a session borrows from its run, and how it works.
struct SessionSetup {
  const RunConfig& config;
  const Graph& graph;
  const Dataset& dataset;
  const ExecutionPlan& plan;  // in force at the time of a checkpoint
  const ModelLayout& layout;  // of checkpoints, with the properties of the data
  RunTime time = RunTime::kReal;
  bool root = true;  // rank 0
  // The results of the run go there; "": nowhere, and the best weights stay in memory.
  std::filesystem::path folder = {};
  bool saves = true;  // checkpoints are written as the config says
  bool tells = true;  // evaluations are printed
};

class RunSession {
 public:
  // Begins or resumes a run at `start`.  `rule` says where its boundaries are.
  RunSession(const SessionSetup& setup, const BoundarySchedule& rule, const StartPoint& start,
             RunHost& host);

  RunPosition& position() { return position_; }
  const RunPosition& position() const { return position_; }
  const TrainingPosition& now() const { return position_.now(); }
  MetricsPoint Here() const;

  // Opens metrics.jsonl and the files of TensorBoard, and reads what a run that is resumed at `start` continues.
  void Open(const StartPoint& start);
  // Ends a resumed run that ended early before where it is: it is not continued, and keeps its weights.  Collective.
  void EndWhereItEnded();

  // Adds the training results of a worker since the last boundary.
  void Add(const TrainedEpoch& trained) { so_far_.epoch.Add(trained); }
  // Writes the line of a step.  `loss` of the last one is in checkpoints and in the summary.
  void Log(const StepMetrics& metrics);
  void NoteLoss(double loss) { loss_ = loss; }

  // Does what is due at a boundary, at the present position.  Returns an exit code if the run is over.  `stopped`: a
  // signal asked the run to stop.
  std::optional<ExitCode> AtBoundary(bool stopped);

  // Fills in the results of training and evaluations.
  void Describe(Summary& summary) const;

  const RunResults& results() const { return results_; }
  // Returns the time before the resume, and the results of the current epoch.
  const RunSoFar& so_far() const { return so_far_; }
  // Returns the step up to which the files of the run's folder keep their lines (StartPoint::KeptStep).
  const std::optional<int64_t>& kept_step() const { return kept_step_; }

 private:
  bool Agree(bool yes);
  bool MayEnd();
  void EndsEarly() const;
  bool CheckpointIsDue(const BoundaryPoint& point) const;
  bool EvaluateSplits(bool run_ends);
  void Evaluate(Split split);
  BestWeights WeightsToTest(Split split);
  void KeepBest(Split split);
  void Tell(const MetricsPoint& at, Split split, const Evaluation& evaluation) const;
  void Save(const BoundaryPoint& point);
  CheckpointInfo InfoOf(const TrainingPosition& position) const;
  std::filesystem::path BestFile() const;

  bool writes() const { return setup_.root && !setup_.folder.empty(); }

  const SessionSetup setup_;
  const RunConfig& config_;
  RunHost& host_;
  const RunFolder folder_;
  RunPosition position_;
  TrainingPosition boundary_;  // the position at the last boundary
  int64_t saved_samples_;      // the position of the last checkpoint
  std::optional<int64_t> kept_step_;
  RunResults results_;
  RunSoFar so_far_;
  std::optional<double> loss_;  // of the last logged step
  BestWeights best_;            // without a folder
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;  // null unless the config asks for it
};

}  // namespace dtrain
