// Evaluates a run, real or simulated: this file decides which splits are looked at, what is measured of them, and what
// the summary says in the end.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/transport.h"
#include "framework/data/dataset.h"
#include "framework/data/text/bleu.h"
#include "framework/exchange/boundary_schedule.h"
#include "framework/nn/net.h"
#include "framework/runtime/judge/evaluator.h"
#include "framework/runtime/judge/translator.h"
#include "framework/runtime/results/metrics.h"
#include "framework/runtime/results/run_folder.h"
#include "framework/runtime/results/run_so_far.h"
#include "framework/runtime/results/summary.h"
#include "framework/runtime/setup/run_config.h"
#include "framework/runtime/weights/checkpoint.h"

namespace dtrain {

// The splits of an evaluation.  While a run goes on the validation split, where there is one: the
// test split is for the end.
std::vector<Split> SplitsToEvaluate(const Dataset& dataset, bool run_ends);

// A run translates the test split for BLEU, greedily, and other splits not at all.
std::optional<SearchOptions> RunSearchOf(Split split);

// SplitScores are what one rank found of a split.
struct SplitScores {
  std::vector<BlockResult> blocks;
  BleuCounts bleu;
};

// This rank's part.  With `search`, what the set has of sentences is translated too.
SplitScores ScoreSplit(Net& net, const Dataset& dataset, Split split, ConstArena weights,
                       ConstArena state, int rank, int ranks,
                       const std::optional<SearchOptions>& search);

// All ranks call it at a boundary; all get the same answer.
Evaluation JoinScores(Transport& transport, const Dataset& dataset, const SplitScores& mine);

// "loss 3.4012, perplexity 30.00, BLEU 28.31"
std::string Describe(const Evaluation& evaluation, const std::vector<std::string>& metrics);

// RunResults are what a run's evaluations come to.
class RunResults {
 public:
  RunResults() = default;
  explicit RunResults(std::vector<std::string> metric_names, const RunConfig::Stop& stop = {})
      : metric_names_(std::move(metric_names)), stop_(stop) {}

  // Returns its line of metrics.jsonl.
  EvaluationMetrics Note(const MetricsPoint& at, Split split, const Evaluation& evaluation,
                         double seconds = 0);
  // True where the last evaluation of this split was after so many samples.
  bool Has(Split split, int64_t samples) const {
    return evaluated_samples_[static_cast<size_t>(split)] == samples;
  }
  // The lines of all evaluations, in order (ToLine).
  const std::vector<std::string>& lines() const { return lines_; }

  const std::optional<TestResult>& test() const { return test_; }  // the last one
  // Fills what they come to for a run that ends at this step: the test says whose weights it is of
  // where they are others.
  void Describe(const BoundarySchedule& rule, int64_t end, Summary& summary) const;
  // The best result is that of the validation split where there is one, else of the test split, and the first of
  // equals: the highest accuracy; without one the lowest perplexity, else the lowest loss.  There is none where it
  // never was finite.
  const std::optional<BestResult>& best() const { return best_; }
  bool validated() const { return validated_; }  // there is a validation split
  // The run is as good as it was to become, or gets no better: it may end here.
  bool over() const { return reached_ || OutOfPatience(); }
  bool OutOfPatience() const { return stop_.patience > 0 && no_better_ >= stop_.patience; }
  std::string WhyOver() const;  // "its target is reached"; "" where it is not over
  // Tells what became of the target, where there is one; a run's epoch and global batch are given in samples.
  std::optional<TargetResult> target(int64_t epoch_samples, int64_t batch) const;
  const std::vector<std::string>& metric_names() const { return metric_names_; }
  // The model's metrics behind the first.
  std::vector<std::pair<std::string, double>> Others(const Evaluation& evaluation) const;
  // The line of metrics.jsonl for an evaluation that has been noted.
  EvaluationMetrics MetricsOf(const MetricsPoint& at, Split split, const Evaluation& evaluation,
                              double seconds = 0) const;

 private:
  void CompareWithBest(const MetricsPoint& at, const Evaluation& evaluation);
  BestResult Measured(const MetricsPoint& at, const Evaluation& evaluation) const;

  std::vector<std::string> metric_names_;
  RunConfig::Stop stop_;
  std::vector<std::string> lines_;
  std::array<int64_t, std::size(kSplits)> evaluated_samples_ = {-1, -1, -1};  // by Split
  bool validated_ = false;
  std::optional<MetricsPoint> reached_;  // where the target was reached first
  int64_t compared_step_ = -1;           // the last one that counted
  int64_t no_better_ = 0;                // evaluations in a row
  std::optional<TestResult> test_;
  int64_t tested_step_ = 0;             // whose weights
  std::optional<Criterion> criterion_;  // by the first evaluation, for the whole run
  std::optional<BestResult> best_;      // of a finite value
};

// Notes the evaluations up to the step that a run is resumed behind, from its checkpoint, or from `metrics`, its
// metrics.jsonl ("": none), where an older program wrote that.  So its best result is that of the whole run, and so are
// its patience and the time to a target.
void RecallEvaluations(const RunSoFar& so_far, const std::filesystem::path& metrics, int64_t step,
                       RunResults& results);

// True where there is nothing left to do in the run's own folder: the run has been trained to its end, or was over
// before by its evaluations, and its summary says so.
bool IsFinished(const RunFolder& folder, const RunResults& results, int64_t samples_applied,
                const BoundarySchedule& rule);
// Finds the same for a run that is resumed at `at` in its own folder, with the evaluations up to there.  Where there is
// nothing left to do it says so, why, and what would let the run go on.
bool TellFinished(const RunFolder& folder, const RunConfig& config,
                  const std::vector<std::string>& metric_names, const TrainingPosition& at,
                  const RunSoFar& so_far, const BoundarySchedule& rule);

}  // namespace dtrain
