#include "framework/evaluate/guessing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "framework/core/log.h"

namespace dtrain {
namespace {

// Returns the number of answers of a sample that the first metric accepts; 0 if there is none, or it is no accuracy.
int64_t AnswersOf(const Graph& graph) {
  for (const GraphLayer& layer : graph.layers()) {
    if (layer.layer->role() == LayerRole::kMetric) return layer.layer->accepted_answers();
  }
  return 0;
}

}  // namespace

std::optional<Guess> GuessOf(const Graph& graph, const Dataset& dataset, Split split) {
  const int64_t answers = AnswersOf(graph);
  const std::span<const uint16_t> classes = dataset.ClassOf(split);
  if (answers == 0 || classes.empty()) return std::nullopt;
  std::vector<int64_t> counts(static_cast<size_t>(*std::ranges::max_element(classes)) + 1);
  for (const uint16_t label : classes) ++counts[label];
  std::ranges::sort(counts, std::greater<>());
  const auto accepted = std::min(answers, static_cast<int64_t>(counts.size()));
  const int64_t right = std::accumulate(counts.begin(), counts.begin() + accepted, int64_t{0});
  const auto samples = static_cast<int64_t>(classes.size());
  return Guess{static_cast<double>(right) / static_cast<double>(samples), samples};
}

bool IsGuessing(double accuracy, const Guess& guess) {
  if (accuracy >= 1 && guess.accuracy < 1) return false;
  const double variance = guess.accuracy * (1 - guess.accuracy);
  return accuracy <= guess.accuracy + 2 * std::sqrt(variance / static_cast<double>(guess.samples));
}

void DescribeGuess(const Graph& graph, const Dataset& dataset, Summary& summary) {
  if (!summary.test || !summary.test->accuracy) return;
  const std::optional<Guess> guess = GuessOf(graph, dataset, Split::kTest);
  if (!guess) return;
  summary.test->guess_accuracy = guess->accuracy;
  summary.test->guessing = IsGuessing(*summary.test->accuracy, *guess);
}

std::string GuessText(double accuracy, const Guess& guess, const std::string& split) {
  if (guess.accuracy == 1) {
    return fmt::format(
        "{} accuracy {:.2f} % says nothing: all samples of the split are of one class", split,
        100 * accuracy);
  }
  const bool above = accuracy > guess.accuracy;  // by less than so few samples differ by chance
  return fmt::format(
      "{} accuracy {:.2f} % {} that of guessing: the same answer for every sample has {:.2f} %; "
      "check the labels, and try another solver.lr or more epochs, unless the classes are very "
      "uneven: then the accuracy says little",
      split, 100 * accuracy, above ? "may be" : "is", 100 * guess.accuracy);
}

void WarnOfGuessing(const Summary& summary, const std::string& run) {
  if (!summary.test || !summary.test->guessing || summary.status != "completed") return;
  const Guess guess{.accuracy = summary.test->guess_accuracy.value_or(0)};
  const std::string text = GuessText(summary.test->accuracy.value_or(0), guess);
  log::Warning("{}{}", run.empty() ? "" : run + ": ", text);
}

}  // namespace dtrain
