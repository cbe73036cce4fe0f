// Guessing: whether an accuracy is no better than that of a model that gives each sample the same answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/data/dataset.h"
#include "framework/evaluate/evaluator.h"
#include "framework/nn/graph.h"
#include "framework/results/summary.h"

namespace dtrain {

struct Guess {
  double accuracy = 0;  // 0..1
  int64_t samples = 0;
};

// Returns the accuracy of guessing on a split: the share of its most frequent class.  For an accuracy that accepts k
// answers (top_k) it is the share of the k most frequent classes.  Returns nullopt if the samples have no classes, or
// the model has no accuracy.
std::optional<Guess> GuessOf(const Graph& graph, const Dataset& dataset, Split split);

// True if the accuracy exceeds that of guessing by at most two standard errors of a share of so many samples.  An
// accuracy of 1 never does on a split of several classes, however small the split is.
bool IsGuessing(double accuracy, const Guess& guess);

// Fills guess_accuracy and guessing of the summary's test, if there is one.
void DescribeGuess(const Graph& graph, const Dataset& dataset, Summary& summary);

// Returns "test accuracy 11.35 % is that of guessing ..."; `split` names the split.
std::string GuessText(double accuracy, const Guess& guess, const std::string& split = "test");

// Warns if a run has completed and its test accuracy is that of guessing.  `run` precedes the text if it is not empty:
// it names the run if there are several.
void WarnOfGuessing(const Summary& summary, const std::string& run = "");

}  // namespace dtrain
