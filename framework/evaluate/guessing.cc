#include "framework/evaluate/guessing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "framework/core/log.h"
#include "framework/data/images/image_set.h"

namespace dtrain {
namespace {

// Returns the number of answers of a sample that the first metric accepts; 0 if there is none, or it is no accuracy.
int64_t AnswersOf(const Graph& graph) {
  for (const GraphLayer& layer : graph.layers()) {
    if (layer.layer->role() == LayerRole::kMetric) return layer.layer->accepted_answers();
  }
  return 0;
}

// Returns the mean square of a split's normalised targets, whose mean over the training samples is 0, in the unit of the
// loss.
double SquaredTargets(const Dataset& dataset, Split split) {
  constexpr int64_t kTogether = 256;
  const int64_t samples = dataset.size(split);
  Batch batch(dataset.fields(), std::min(samples, kTogether));
  std::vector<int64_t> indices;
  double sum = 0;
  for (int64_t begin = 0; begin < samples; begin += kTogether) {
    indices.resize(static_cast<size_t>(std::min(samples - begin, kTogether)));
    std::iota(indices.begin(), indices.end(), begin);
    batch.Resize(std::ssize(indices));
    dataset.Fill(split, indices, kNoEpoch, batch);
    const Tensor& targets = batch.fields[1];
    const int64_t count = targets.shape.count();
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      squares += static_cast<double>(targets.f32()[i]) * targets.f32()[i];
    }
    sum +=
        squares * batch.loss_unit * static_cast<double>(batch.samples) / static_cast<double>(count);
  }
  return sum / static_cast<double>(samples);
}

// Returns the guess of a regression.
std::optional<Guess> GuessOfMean(const Dataset& dataset, Split split) {
  constexpr int64_t kFewest = 20;
  const ImageSetSpec* const info = dataset.image_info();
  const int64_t samples = dataset.size(split);
  if (info == nullptr || !info->scales_targets() || samples < kFewest) return std::nullopt;
  return Guess{.samples = samples, .loss = SquaredTargets(dataset, split)};
}

}  // namespace

std::optional<Guess> GuessOf(const Graph& graph, const Dataset& dataset, Split split) {
  const int64_t answers = AnswersOf(graph);
  const std::span<const uint16_t> classes = dataset.ClassOf(split);
  if (classes.empty()) return GuessOfMean(dataset, split);
  if (answers == 0) return std::nullopt;
  std::vector<int64_t> counts(static_cast<size_t>(*std::ranges::max_element(classes)) + 1);
  for (const uint16_t label : classes) ++counts[label];
  std::ranges::sort(counts, std::greater<>());
  const auto accepted = std::min(answers, static_cast<int64_t>(counts.size()));
  const int64_t right = std::accumulate(counts.begin(), counts.begin() + accepted, int64_t{0});
  const auto samples = static_cast<int64_t>(classes.size());
  return Guess{static_cast<double>(right) / static_cast<double>(samples), samples};
}

bool IsGuessing(double result, const Guess& guess) {
  if (guess.loss) {
    return !(result < *guess.loss * (1 - 4 / static_cast<double>(guess.samples)));
  }
  if (result >= 1 && guess.accuracy < 1) return false;
  const double variance = guess.accuracy * (1 - guess.accuracy);
  return result <= guess.accuracy + 2 * std::sqrt(variance / static_cast<double>(guess.samples));
}

void DescribeGuess(const Graph& graph, const Dataset& dataset, Summary& summary) {
  if (!summary.test) return;
  const std::optional<Guess> guess = GuessOf(graph, dataset, Split::kTest);
  if (!guess) return;
  TestResult& test = *summary.test;
  if (guess->loss) {
    test.guess_loss = guess->loss;
    test.guessing = IsGuessing(test.loss, *guess);
  } else if (test.accuracy) {
    test.guess_accuracy = guess->accuracy;
    test.guessing = IsGuessing(*test.accuracy, *guess);
  }
}

std::string GuessText(double result, const Guess& guess, const std::string& split) {
  constexpr char kAdvice[] = "check the labels, and try another solver.lr or more epochs";
  if (guess.loss) {
    return fmt::format(
        "{} loss {:.4g} {} that of guessing: the mean of the training labels as every answer has "
        "{:.4g}; {}",
        split, result, result < *guess.loss ? "may be" : "is", *guess.loss, kAdvice);
  }
  if (guess.accuracy == 1) {
    return fmt::format(
        "{} accuracy {:.2f} % says nothing: all samples of the split are of one class", split,
        100 * result);
  }
  const bool above = result > guess.accuracy;  // by less than so few samples differ by chance
  return fmt::format(
      "{} accuracy {:.2f} % {} that of guessing: the same answer for every sample has {:.2f} %; "
      "{}, unless the classes are very uneven: then the accuracy says little",
      split, 100 * result, above ? "may be" : "is", 100 * guess.accuracy, kAdvice);
}

void WarnOfGuessing(const Summary& summary, const std::string& run) {
  if (!summary.test || !summary.test->guessing || summary.status != "completed") return;
  const TestResult& test = *summary.test;
  const Guess guess{.accuracy = test.guess_accuracy.value_or(0), .loss = test.guess_loss};
  const std::string text = GuessText(guess.loss ? test.loss : test.accuracy.value_or(0), guess);
  log::Warning("{}{}", run.empty() ? "" : run + ": ", text);
}

}  // namespace dtrain
