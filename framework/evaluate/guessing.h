// Guessing: whether a model is no better than one that gives each sample the same answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/data/dataset.h"
#include "framework/evaluate/evaluator.h"
#include "framework/nn/graph.h"
#include "framework/results/summary.h"

namespace dtrain {

// Holds what the same answer for every sample has on a split: an accuracy or, for a regression, a loss.
struct Guess {
  double accuracy = 0;  // 0..1
  int64_t samples = 0;
  std::optional<double> loss = {};
};

// Returns
//   - the share of the split's most frequent class or, for an accuracy that accepts k answers (top_k), that of the k most
//     frequent classes;
//   - for normalised targets (DecideTargets) the mean squared error of the training targets' mean.
// Returns nullopt for other models, and for a regression with less than 20 samples.
std::optional<Guess> GuessOf(const Graph& graph, const Dataset& dataset, Split split);

// True if the accuracy exceeds that of guessing by at most two standard errors of a share of so many samples.  An
// accuracy of 1 never does on a split of several classes, however small the split is.  For a guess of a loss, `result` is
// a loss: true if it explains no more of the targets' variance than 4 / samples, which is the square of two standard
// errors of a correlation.
bool IsGuessing(double result, const Guess& guess);

// Fills guess_accuracy or guess_loss, and guessing, of the summary's test, if there is one.
void DescribeGuess(const Graph& graph, const Dataset& dataset, Summary& summary);

// Returns "test accuracy 11.35 % is that of guessing ..." or "test loss 1.02 ..."; `split` names the split.
std::string GuessText(double result, const Guess& guess, const std::string& split = "test");

// Warns if a run has completed and its test is that of guessing.  `run` precedes the text if it is not empty:
// it names the run if there are several.
void WarnOfGuessing(const Summary& summary, const std::string& run = "");

}  // namespace dtrain
