// The evaluations of a run, real or simulated: which splits are evaluated, what is measured, and what the summary
// contains at the end.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/checkpoint/checkpoint.h"
#include "framework/comm/transport.h"
#include "framework/data/dataset.h"
#include "framework/data/text/bleu.h"
#include "framework/evaluate/evaluator.h"
#include "framework/evaluate/translator.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/nn/net.h"
#include "framework/results/metrics.h"
#include "framework/results/run_folder.h"
#include "framework/results/run_so_far.h"
#include "framework/results/summary.h"
#include "framework/setup/run_config.h"

namespace dtrain {

// Returns the splits to evaluate.  During a run that is the validation split, if there is one; the test split is
// evaluated at the end.
std::vector<Split> SplitsToEvaluate(const Dataset& dataset, bool run_ends);

// Returns the search options for BLEU: greedy search for the test split, and none for other splits, which are not
// translated.
std::optional<SearchOptions> RunSearchOf(Split split);

// The results of one rank for a split.
struct SplitScores {
  std::vector<BlockResult> blocks;
  BleuCounts bleu;
};

// Evaluates this rank's blocks of a split.  With `search` it also translates this rank's sentences.
SplitScores ScoreSplit(Net& net, const Dataset& dataset, Split split, ConstArena weights,
                       ConstArena state, int rank, int ranks,
                       const std::optional<SearchOptions>& search);

// All ranks call it at a boundary, and all get the same result.
Evaluation JoinScores(Transport& transport, const Dataset& dataset, const SplitScores& mine);

// Returns "loss 3.4012, perplexity 30.00, BLEU 28.31".
std::string Describe(const Evaluation& evaluation, const std::vector<std::string>& metrics);

// RunResults: the results of a run's evaluations so far.
class RunResults {
 public:
  RunResults() = default;
  explicit RunResults(std::vector<std::string> metric_names, const StopConfig& stop = {})
      : metric_names_(std::move(metric_names)), stop_(stop) {}

  // Records an evaluation and returns its line of metrics.jsonl.
  EvaluationMetrics Note(const MetricsPoint& at, Split split, const Evaluation& evaluation,
                         double seconds = 0);
  // True if the last evaluation of this split was after this number of samples.
  bool Has(Split split, int64_t samples) const {
    return evaluated_samples_[static_cast<size_t>(split)] == samples;
  }
  // Returns the lines of all evaluations, in order (ToLine).
  const std::vector<std::string>& lines() const { return lines_; }

  const std::optional<TestResult>& test() const { return test_; }  // the last one
  // Fills the results into the summary of a run that ends at this step.  If the tested weights are of an earlier step,
  // the test result names that step.
  void Describe(const BoundarySchedule& rule, int64_t end, Summary& summary) const;
  // Returns the best result.  It is that of the validation split if there is one, else of the test split: the highest
  // accuracy, else the lowest perplexity, else the lowest loss.  Of equal results the one with the lower loss counts,
  // else the first.  There is none while no result is finite.
  const std::optional<BestResult>& best() const { return best_; }
  // Returns the epoch of the evaluated weights if they are the kept ones of the best evaluation.
  std::optional<int64_t> EpochOf(const Evaluation& evaluation) const;
  bool validated() const { return validated_; }  // there is a validation split
  // True if the run may end here: it reached its target, or the patience is exhausted.
  bool over() const { return reached_ || OutOfPatience(); }
  bool OutOfPatience() const { return stop_.patience > 0 && no_better_ >= stop_.patience; }
  std::string WhyOver() const;  // "its target is reached"; "" if not over()
  // Returns whether and when the run reached `stop.target`; nullopt if none is set.  `epoch_samples` is the size of an
  // epoch, `batch` the global batch size.
  std::optional<TargetResult> target(int64_t epoch_samples, int64_t batch) const;
  const std::vector<std::string>& metric_names() const { return metric_names_; }
  // Returns the model's metrics after the first.
  std::vector<std::pair<std::string, double>> Others(const Evaluation& evaluation) const;
  // Returns the line of metrics.jsonl for an evaluation that was recorded.
  EvaluationMetrics MetricsOf(const MetricsPoint& at, Split split, const Evaluation& evaluation,
                              double seconds = 0) const;

 private:
  // True if the value is finite and beats the best so far; one that is to be lower, by `margin` of the best.
  bool Beats(double value, double margin) const;
  bool IsBetter(double value, double loss) const;  // of equal values the one with the lower loss
  void CompareWithBest(const MetricsPoint& at, const Evaluation& evaluation);
  BestResult Measured(const MetricsPoint& at, const Evaluation& evaluation) const;

  std::vector<std::string> metric_names_;
  StopConfig stop_;
  std::vector<std::string> lines_;
  std::array<int64_t, std::size(kSplits)> evaluated_samples_ = {-1, -1, -1};  // by Split
  bool validated_ = false;
  std::optional<MetricsPoint> reached_;  // where the target was first reached
  int64_t compared_step_ = -1;           // step of the last evaluation compared with the best
  int64_t no_better_ = 0;  // evaluations in a row that improved neither the measure nor the loss
  double lowest_loss_ = std::numeric_limits<double>::infinity();
  std::optional<TestResult> test_;
  int64_t tested_step_ = 0;             // step of the tested weights
  std::optional<Criterion> criterion_;  // set by the first evaluation, for the whole run
  std::optional<BestResult> best_;      // always of a finite value
  double loss_of_best_ = 0;
};

// Records the evaluations in a checkpoint up to the step at which a run is resumed.  So the best result, the patience
// and the time to the target refer to the whole run.
void RecallEvaluations(const RunSoFar& so_far, int64_t step, RunResults& results);

// True if nothing is left to do in the run's own folder: the run was trained to its end, or ended early by its
// evaluations, and its summary confirms that.
bool IsFinished(const RunFolder& folder, const RunResults& results, int64_t samples_applied,
                const BoundarySchedule& rule);
// Does the same for a run that is resumed at `at` in its own folder.  If nothing is left to do, it logs that, the
// reason, and the setting that would let the run continue.
bool TellFinished(const RunFolder& folder, const RunConfig& config,
                  const std::vector<std::string>& metric_names, const TrainingPosition& at,
                  const RunSoFar& so_far, const BoundarySchedule& rule);

}  // namespace dtrain
