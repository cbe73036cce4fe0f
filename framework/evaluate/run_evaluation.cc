#include "framework/evaluate/run_evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/text.h"
#include "framework/evaluate/translator.h"

namespace dtrain {
namespace {

std::optional<double> AccuracyOf(const Evaluation& evaluation) {
  if (evaluation.metrics.empty()) return std::nullopt;
  return evaluation.metrics[0];
}

Criterion MeasureOf(const Evaluation& evaluation) {
  if (AccuracyOf(evaluation)) return Criterion::kAccuracy;
  return evaluation.perplexity ? Criterion::kPerplexity : Criterion::kLoss;
}

// Returns NaN if the evaluation does not have the measure.
double ValueOf(Criterion measure, const Evaluation& evaluation) {
  if (measure == Criterion::kLoss) return evaluation.loss;
  const std::optional<double> value =
      measure == Criterion::kAccuracy ? AccuracyOf(evaluation) : evaluation.perplexity;
  return value.value_or(std::nan(""));
}

}  // namespace

std::vector<Split> SplitsToEvaluate(const Dataset& dataset, bool run_ends) {
  if (!dataset.has_validation()) return {Split::kTest};
  if (run_ends) return {Split::kValidation, Split::kTest};
  return {Split::kValidation};
}

std::optional<SearchOptions> RunSearchOf(Split split) {
  if (split != Split::kTest) return std::nullopt;
  return SearchOptions{};
}

SplitScores ScoreSplit(Net& net, const Dataset& dataset, Split split, ConstArena weights,
                       ConstArena state, int rank, int ranks,
                       const std::optional<SearchOptions>& search) {
  SplitScores scores;
  scores.blocks = EvaluateBlocks(net, dataset, split, weights, state, rank, ranks);
  if (search) {
    scores.bleu = TranslateSplit(net, dataset, split, weights, state, rank, ranks, *search);
  }
  return scores;
}

Evaluation JoinScores(Transport& transport, const Dataset& dataset, const SplitScores& mine) {
  Evaluation evaluation = JoinEvaluations(transport, dataset, mine.blocks);
  if (dataset.sentence_pairs() == nullptr) return evaluation;
  const BleuCounts counts = JoinCounts(transport, mine.bleu);
  if (counts.reference_length > 0) evaluation.bleu = counts.Score();
  return evaluation;
}

std::string Describe(const Evaluation& evaluation, const std::vector<std::string>& metrics) {
  std::string text = fmt::format("loss {:.4f}", evaluation.loss);
  for (size_t m = 0; m < metrics.size(); ++m) {
    text += fmt::format(", {} {:.2f} %", metrics[m], 100 * evaluation.metrics[m]);
  }
  if (evaluation.perplexity) text += fmt::format(", perplexity {:.2f}", *evaluation.perplexity);
  if (evaluation.bleu) text += fmt::format(", BLEU {:.2f}", *evaluation.bleu);
  return text;
}

std::vector<std::pair<std::string, double>> RunResults::Others(const Evaluation& evaluation) const {
  std::vector<std::pair<std::string, double>> others;
  for (size_t m = 1; m < evaluation.metrics.size(); ++m) {
    others.emplace_back(metric_names_.at(m), evaluation.metrics[m]);
  }
  return others;
}

EvaluationMetrics RunResults::MetricsOf(const MetricsPoint& at, Split split,
                                        const Evaluation& evaluation, double seconds) const {
  EvaluationMetrics metrics{.at = at, .loss = evaluation.loss, .evaluate_seconds = seconds};
  if (validated_) metrics.split = split == Split::kValidation ? "validation" : "test";
  metrics.accuracy = AccuracyOf(evaluation);
  metrics.others = Others(evaluation);
  metrics.perplexity = evaluation.perplexity;
  metrics.bleu = evaluation.bleu;
  metrics.weights_step = evaluation.step;
  return metrics;
}

EvaluationMetrics RunResults::Note(const MetricsPoint& at, Split split,
                                   const Evaluation& evaluation, double seconds) {
  validated_ |= split == Split::kValidation;
  evaluated_samples_[static_cast<size_t>(split)] = at.samples;
  if (split == Split::kTest) {
    test_ = TestResult{evaluation.loss, AccuracyOf(evaluation), evaluation.perplexity,
                       evaluation.bleu, Others(evaluation)};
    tested_step_ = evaluation.step.value_or(at.step);
    test_->epoch = EpochOf(evaluation);
  }
  if (split == Split::kValidation || !validated_) CompareWithBest(at, evaluation);
  EvaluationMetrics metrics = MetricsOf(at, split, evaluation, seconds);
  lines_.push_back(ToLine(metrics));
  return metrics;
}

bool RunResults::Beats(double value, double margin) const {
  if (!std::isfinite(value)) return false;
  if (!best_) return true;
  if (criterion_ == Criterion::kAccuracy) return value > best_->value();
  return value < (1 - margin) * best_->value();
}

bool RunResults::IsBetter(double value, double loss) const {
  if (best_ && value == best_->value()) return loss < loss_of_best_;
  return Beats(value, 0);
}

void RunResults::CompareWithBest(const MetricsPoint& at, const Evaluation& evaluation) {
  if (!criterion_) criterion_ = MeasureOf(evaluation);
  const double value = ValueOf(*criterion_, evaluation);
  const bool more = criterion_ == Criterion::kAccuracy;  // a higher value is better
  // The loss of a run that stands still changes by rounding; the bound is that of PyTorch's ReduceLROnPlateau.
  constexpr double kLower = 1e-4;
  const bool gains = Beats(value, kLower);
  if (IsBetter(value, evaluation.loss)) {
    best_ = Measured(at, evaluation);
    loss_of_best_ = evaluation.loss;
  }
  // An accuracy of few samples stands still for many evaluations of a run that learns, while its loss falls.
  const bool lower_loss = std::isfinite(evaluation.loss) &&
                          (!std::isfinite(lowest_loss_) ||
                           evaluation.loss < lowest_loss_ - kLower * std::abs(lowest_loss_));
  if (lower_loss) lowest_loss_ = evaluation.loss;
  // An evaluation of the same step does not count twice: a run that is resumed at its end evaluates there once more.
  // The first evaluation does not count either; later ones are compared with it, even if it is not finite.
  const bool first = compared_step_ < 0;
  if (at.step != compared_step_) no_better_ = gains || lower_loss || first ? 0 : no_better_ + 1;
  compared_step_ = at.step;
  if (reached_ || stop_.target <= 0) return;
  const bool good = more ? value >= stop_.target : value <= stop_.target;
  if (good) reached_ = at;
}

// The result contains only values that cannot be mistaken for the run's criterion.
BestResult RunResults::Measured(const MetricsPoint& at, const Evaluation& evaluation) const {
  BestResult result{.epoch = at.epoch + 1, .step = at.step};
  result.others = Others(evaluation);
  if (criterion_ == Criterion::kLoss) {
    result.loss = evaluation.loss;
    return result;
  }
  result.accuracy = AccuracyOf(evaluation);
  result.perplexity = evaluation.perplexity;
  return result;
}

std::optional<int64_t> RunResults::EpochOf(const Evaluation& evaluation) const {
  if (!evaluation.step || !best_ || best_->step != evaluation.step) return std::nullopt;
  return best_->epoch;
}

void RunResults::Describe(const BoundarySchedule& rule, int64_t end, Summary& summary) const {
  summary.test = test_;
  if (summary.test && tested_step_ != end) summary.test->step = tested_step_;
  summary.best = best_;
  summary.target = target(rule.epoch_samples, rule.batch);
}

std::string RunResults::WhyOver() const {
  if (OutOfPatience()) {
    return fmt::format("{} in a row were no better than the best",
                       Counted(stop_.patience, "evaluation"));
  }
  return reached_ ? "its target is reached" : "";
}

std::optional<TargetResult> RunResults::target(int64_t epoch_samples, int64_t batch) const {
  if (stop_.target <= 0) return std::nullopt;
  TargetResult target{.value = stop_.target, .reached = reached_.has_value()};
  if (!reached_) return target;
  const auto samples = static_cast<double>(reached_->samples);
  target.seconds = reached_->training_seconds.value_or(reached_->seconds);
  target.epochs = samples / static_cast<double>(epoch_samples);
  target.steps = samples / static_cast<double>(batch);
  return target;
}

void RecallEvaluations(const RunSoFar& so_far, int64_t step, RunResults& results) {
  const std::vector<std::string>& names = results.metric_names();
  std::vector<std::string> others;
  if (!names.empty()) others.assign(names.begin() + 1, names.end());
  for (const EvaluationMetrics& line : EvaluationsIn(so_far.evaluations, others)) {
    if (line.at.step > step) continue;  // it will be evaluated again
    Evaluation evaluation{.loss = line.loss,
                          .perplexity = line.perplexity,
                          .bleu = line.bleu,
                          .step = line.weights_step};
    if (line.accuracy) evaluation.metrics.push_back(*line.accuracy);
    for (const auto& [name, value] : line.others) evaluation.metrics.push_back(value);
    if (evaluation.metrics.size() != names.size()) continue;  // the run had other metrics
    const Split split = line.split == "validation" ? Split::kValidation : Split::kTest;
    results.Note(line.at, split, evaluation, line.evaluate_seconds);
  }
}

// A summary with another number of steps belongs to an earlier end of the run, which was then continued.
bool IsFinished(const RunFolder& folder, const RunResults& results, int64_t samples_applied,
                const BoundarySchedule& rule) {
  if (samples_applied < rule.last_samples && !results.over()) return false;
  if (samples_applied == 0 || !std::filesystem::exists(folder.summary())) return false;
  const auto summary = nlohmann::json::parse(ReadFile(folder.summary()), nullptr,
                                             /*allow_exceptions=*/false);
  if (!summary.is_object() || summary.value("status", "") != "completed") return false;
  // The run that wrote the summary may have had another global batch, and its steps are counted in that.
  const double batch = summary.value("global_batch", static_cast<double>(rule.batch));
  const double samples = summary.value("steps", 0.0) * batch;
  return std::abs(samples - static_cast<double>(samples_applied)) < 0.5;
}

bool TellFinished(const RunFolder& folder, const RunConfig& config,
                  const std::vector<std::string>& metric_names, const TrainingPosition& at,
                  const RunSoFar& so_far, const BoundarySchedule& rule) {
  RunResults results(metric_names, config.stop);
  RecallEvaluations(so_far, at.step, results);
  if (!IsFinished(folder, results, at.samples_applied, rule)) return false;
  const bool by_steps =
      config.max_steps > 0 && rule.last_samples == rule.SamplesOf(config.max_steps);
  std::string why, further;
  if (results.over()) {
    why = fmt::format("{} (step {})", results.WhyOver(), at.step);
    further = results.OutOfPatience() ? "a higher stop.patience" : "another stop.target";
  } else if (by_steps) {
    why = fmt::format("step {} of {}", at.step, config.max_steps);
    further = "a higher max_steps";
  } else {
    const double epochs =
        static_cast<double>(at.samples_applied) / static_cast<double>(rule.epoch_samples);
    why = fmt::format("{:.4g} of {} (step {})", epochs, Counted(config.epochs, "epoch"), at.step);
    further = "more epochs (--set epochs=N)";
  }
  log::Info("nothing to do: the run in {} is complete: {}; with {} it goes on",
            folder.path().string(), why, further);
  return true;
}

}  // namespace dtrain
