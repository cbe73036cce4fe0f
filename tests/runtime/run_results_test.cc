// Tests the results that are derived from a run's evaluations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/evaluate/run_evaluation.h"
#include "framework/results/run_folder.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

Evaluation Classes(double accuracy, double top5 = 1) {
  return {.samples = 100, .terms = 100, .loss = 1 - accuracy, .metrics = {accuracy, top5}};
}

// Returns the end of an epoch (counted from 1) of 80 samples in batches of 8.
MetricsPoint AtEpoch(int64_t epoch) {
  const auto seconds = static_cast<double>(epoch);
  return {epoch - 1, epoch * 10, epoch * 80, 2 * seconds, seconds};
}

Evaluation Sentences(double perplexity) { return {.loss = 1, .perplexity = perplexity}; }

RunResults OfClasses() { return RunResults({"accuracy", "top5"}); }

TEST(RunResults, BestIsTheHighestAccuracyOfTheTestSplitWhereThatIsAll) {
  RunResults results = OfClasses();
  EXPECT_FALSE(results.best().has_value());
  results.Note(AtEpoch(1), Split::kTest, Classes(0.5, 0.8));
  results.Note(AtEpoch(2), Split::kTest, Classes(0.7, 0.9));
  results.Note(AtEpoch(3), Split::kTest, Classes(0.6, 0.95));
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_EQ(results.best()->accuracy, 0.7);
  EXPECT_EQ(results.best()->others, (decltype(BestResult::others){{"top5", 0.9}}));
  EXPECT_EQ(results.test()->accuracy, 0.6) << "the last one";
  EXPECT_EQ(results.test()->loss, 1 - 0.6);
  EXPECT_FALSE(results.validated());
}

TEST(RunResults, TheFirstIsBestWhereAccuracyAndLossAreEqual) {
  RunResults results = OfClasses();
  for (const int64_t epoch : {1, 2, 3}) results.Note(AtEpoch(epoch), Split::kTest, Classes(0.5));
  EXPECT_EQ(results.best()->epoch, 1);
  RunResults text;
  for (const int64_t epoch : {1, 2, 3}) text.Note(AtEpoch(epoch), Split::kTest, Sentences(7));
  EXPECT_EQ(text.best()->epoch, 1);
}

Evaluation Scored(double accuracy, double loss) {
  Evaluation evaluation = Classes(accuracy);
  evaluation.loss = loss;
  return evaluation;
}

TEST(RunResults, OfEqualAccuraciesTheOneWithTheLowerLossIsBest) {
  RunResults results = OfClasses();
  const std::vector<Evaluation> evaluations = {Scored(0.5, 0.7), Scored(0.5, 0.6),
                                               Scored(0.5, 0.65), Scored(0.4, 0.1),
                                               Scored(0.5, std::nan(""))};
  int64_t epoch = 0;
  for (const Evaluation& evaluation : evaluations) {
    results.Note(AtEpoch(++epoch), Split::kValidation, evaluation);
  }
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_FALSE(results.best()->loss.has_value()) << "the accuracy is the criterion";
  RunResults again = OfClasses();
  RecallEvaluations({.evaluations = results.lines()}, 50, again);
  EXPECT_EQ(again.best()->epoch, 2);
  again.Note(AtEpoch(6), Split::kValidation, Scored(0.5, 0.59));
  EXPECT_EQ(again.best()->epoch, 6);
}

// The accuracy of 40 images stands still for many epochs of a model that learns.
TEST(RunResults, PatienceLastsWhileTheLossFalls) {
  const auto evaluated = [](const std::vector<Evaluation>& evaluations) {
    RunResults results({"accuracy", "top5"}, {.patience = 2});
    int64_t epoch = 0;
    for (const Evaluation& evaluation : evaluations) {
      results.Note(AtEpoch(++epoch), Split::kValidation, evaluation);
    }
    return results;
  };
  const std::vector<Evaluation> falling = {Scored(0.5, 0.7), Scored(0.5, 0.69), Scored(0.4, 0.68),
                                           Scored(0.5, 0.67)};
  EXPECT_FALSE(evaluated(falling).over());
  // Rounding makes the loss of a run that stands still lower now and then.
  EXPECT_TRUE(evaluated({Scored(0.5, 0.7), Scored(0.5, 0.69998), Scored(0.5, 0.69996)}).over());
  // Many small steps are a fall.
  EXPECT_FALSE(
      evaluated({Scored(0.5, 0.7), Scored(0.5, 0.69995), Scored(0.5, 0.6999), Scored(0.5, 0.69985)})
          .over());
  // The accuracy gets better while the loss rises.
  EXPECT_FALSE(evaluated({Scored(0.5, 0.7), Scored(0.6, 0.8), Scored(0.6, 0.9), Scored(0.7, 1.0),
                          Scored(0.7, 1.1)})
                   .over());
  // A loss below that of the best evaluation is no gain where one before was lower.
  std::vector<Evaluation> ends = falling;
  ends.insert(ends.end(), {Scored(0.6, 0.9), Scored(0.5, 0.8), Scored(0.6, std::nan(""))});
  EXPECT_TRUE(evaluated(ends).OutOfPatience());
  RunResults resumed({"accuracy", "top5"}, {.patience = 2});
  RecallEvaluations({.evaluations = evaluated(ends).lines()}, 60, resumed);
  EXPECT_FALSE(resumed.over());
  resumed.Note(AtEpoch(7), Split::kValidation, Scored(0.55, 0.68));
  EXPECT_TRUE(resumed.OutOfPatience()) << "0.67 was before the resume";
}

TEST(RunResults, TheTestSplitNeverSetsTheBestBesideAValidationSplit) {
  RunResults results = OfClasses();
  results.Note(AtEpoch(1), Split::kValidation, Classes(0.5));
  results.Note(AtEpoch(2), Split::kValidation, Classes(0.4));
  EXPECT_FALSE(results.test().has_value());
  results.Note(AtEpoch(2), Split::kTest, Classes(0.9));
  EXPECT_TRUE(results.validated());
  EXPECT_EQ(results.best()->epoch, 1);
  EXPECT_EQ(results.best()->accuracy, 0.5);
  EXPECT_EQ(results.test()->accuracy, 0.9);
}

TEST(RunResults, BestOfSentencesIsTheLowestPerplexityOfTheValidationSplit) {
  RunResults results;
  results.Note(AtEpoch(1), Split::kValidation, Sentences(30));
  results.Note(AtEpoch(2), Split::kValidation, Sentences(20));
  results.Note(AtEpoch(3), Split::kValidation, Sentences(25));
  results.Note(AtEpoch(3), Split::kTest, Sentences(10));
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_EQ(results.best()->perplexity, 20);
  EXPECT_EQ(results.test()->perplexity, 10);
}

// A regression model has neither an accuracy nor a perplexity.
TEST(RunResults, BestOfNumbersIsTheLowestLoss) {
  const auto results_of = [](const std::vector<double>& losses, const StopConfig& stop) {
    RunResults results({}, stop);
    int64_t epoch = 0;
    for (const double loss : losses) results.Note(AtEpoch(++epoch), Split::kTest, {.loss = loss});
    return results;
  };
  const RunResults results = results_of({0.5, 0.25, 0.3}, {.target = 0.25, .patience = 2});
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_EQ(results.best()->loss, 0.25);
  EXPECT_TRUE(results.over());
  EXPECT_EQ(results.target(80, 8)->epochs, 2);
  EXPECT_FALSE(results.OutOfPatience());
  EXPECT_TRUE(results_of({0.5, 0.6, 0.5}, {.patience = 2}).OutOfPatience());
  EXPECT_FALSE(results_of({0.5, 0.4}, {.target = 0.3, .patience = 2}).over());
}

TEST(RunResults, ASummarySaysWhoseWeightsWereTestedWhereTheyAreNotTheLast) {
  RunResults results = OfClasses();
  results.Note(AtEpoch(1), Split::kTest, Classes(0.5));
  Summary summary;
  results.Describe({.epoch_samples = 80, .batch = 8}, 10, summary);
  EXPECT_FALSE(summary.test->step.has_value());
  results.Describe({.epoch_samples = 80, .batch = 8}, 15, summary);
  EXPECT_EQ(summary.test->step, 10);
  Evaluation best = Classes(0.5);
  best.step = 7;
  results.Note(AtEpoch(2), Split::kTest, best);
  results.Describe({.epoch_samples = 80, .batch = 8}, 20, summary);
  EXPECT_EQ(summary.test->step, 7);
}

// The tested weights are those of the best evaluation with checkpoint.keep_best, and have its step.
TEST(RunResults, ATestOfKeptWeightsNamesTheirEpoch) {
  RunResults results = OfClasses();
  const std::vector<double> accuracies = {0.5, 0.7, 0.6};
  for (size_t i = 0; i < accuracies.size(); ++i) {
    results.Note(AtEpoch(static_cast<int64_t>(i) + 1), Split::kValidation, Classes(accuracies[i]));
  }
  Evaluation kept = Classes(0.65);
  kept.step = 20;
  results.Note(AtEpoch(3), Split::kTest, kept);
  Summary summary;
  results.Describe({.epoch_samples = 80, .batch = 8}, 30, summary);
  EXPECT_EQ(summary.test->epoch, 2);
  EXPECT_EQ(
      TestText(*summary.test),
      "test accuracy 65.00 %, top5 100.00 %, loss 0.3500, of the weights of epoch 2 (step 20)");
  results.Describe({.epoch_samples = 80, .batch = 8}, 20, summary);
  EXPECT_EQ(
      TestText(*summary.test),
      "test accuracy 65.00 %, top5 100.00 %, loss 0.3500, of the weights of epoch 2, the last");
  RunResults again = OfClasses();
  RecallEvaluations({.evaluations = results.lines()}, 30, again);
  EXPECT_EQ(again.test()->epoch, 2);
  // The file of the best weights has others.
  kept.step = 10;
  results.Note(AtEpoch(3), Split::kTest, kept);
  EXPECT_FALSE(results.test()->epoch.has_value());
  EXPECT_EQ(WeightsText(std::nullopt, 10), ", of the weights of step 10");
}

TEST(RunResults, ATargetIsReachedOnceAndSaysWhen) {
  RunResults results({"accuracy", "top5"}, {.target = 0.7});
  results.Note(AtEpoch(1), Split::kTest, Classes(0.6));
  EXPECT_FALSE(results.over());
  EXPECT_FALSE(results.target(80, 8)->reached);
  EXPECT_FALSE(results.target(80, 8)->seconds.has_value());
  results.Note(AtEpoch(2), Split::kTest, Classes(0.7));
  results.Note(AtEpoch(3), Split::kTest, Classes(0.8));
  EXPECT_TRUE(results.over());
  EXPECT_FALSE(results.OutOfPatience());
  const TargetResult target = *results.target(80, 8);
  EXPECT_EQ(target.value, 0.7);
  EXPECT_TRUE(target.reached);
  EXPECT_EQ(target.seconds, 2) << "without what evaluations took";
  EXPECT_EQ(target.epochs, 2);
  EXPECT_EQ(target.steps, 20);
}

TEST(RunResults, WithoutATargetNothingIsSaidOfOne) {
  RunResults results = OfClasses();
  for (const int64_t epoch : {1, 2, 3, 4}) {
    results.Note(AtEpoch(epoch), Split::kTest, Classes(epoch == 1 ? 1 : 0.5));
  }
  EXPECT_FALSE(results.over());
  EXPECT_FALSE(results.target(80, 8).has_value());
}

TEST(RunResults, OnlyTheSplitThatJudgesReachesATarget) {
  RunResults results({"accuracy", "top5"}, {.target = 0.7});
  results.Note(AtEpoch(1), Split::kValidation, Classes(0.6));
  results.Note(AtEpoch(1), Split::kTest, Classes(0.9));
  EXPECT_FALSE(results.over());
}

TEST(RunResults, ATargetOfSentencesIsAPerplexityThatMustNotBeExceeded) {
  RunResults results({}, {.target = 20});
  results.Note(AtEpoch(1), Split::kValidation, Sentences(21));
  EXPECT_FALSE(results.over());
  results.Note(AtEpoch(2), Split::kValidation, Sentences(20));
  EXPECT_TRUE(results.over());
}

TEST(RunResults, PatienceEndsWithEvaluationsInARowThatAreNoBetter) {
  RunResults results({"accuracy", "top5"}, {.patience = 2});
  int64_t epoch = 0;
  const auto over_after = [&](double accuracy) {
    results.Note(AtEpoch(++epoch), Split::kTest, Classes(accuracy));
    return results.over();
  };
  EXPECT_FALSE(over_after(0.5));
  EXPECT_FALSE(over_after(0.5)) << "one that is as good is no better";
  EXPECT_FALSE(over_after(0.6)) << "and a better one begins the count anew";
  EXPECT_FALSE(over_after(0.55));
  EXPECT_TRUE(over_after(0.6));
  EXPECT_TRUE(results.OutOfPatience());
}

TEST(RunResults, TheSameStepCountsOnceForPatience) {
  RunResults results({"accuracy", "top5"}, {.patience = 1});
  results.Note(AtEpoch(1), Split::kTest, Classes(0.5));
  results.Note(AtEpoch(1), Split::kTest, Classes(0.5));
  EXPECT_FALSE(results.over());
}

// exp(loss) overflows, and the line of the evaluation then has null.
TEST(RunResults, AnInfinitePerplexityIsNotEvaluatedByItsLoss) {
  const auto recalled = [](const std::vector<double>& perplexities) {
    RunResults run;
    int64_t epoch = 0;
    for (const double perplexity : perplexities) {
      run.Note(AtEpoch(++epoch), Split::kValidation, Sentences(perplexity));
    }
    RunResults results({}, {.target = 5, .patience = 2});
    RecallEvaluations(RunSoFarFrom(ToJson({.evaluations = run.lines()})), 1000, results);
    return results;
  };
  for (const std::vector<double>& perplexities :
       {std::vector<double>{HUGE_VAL, 900, 700}, {900, HUGE_VAL, 700}}) {
    RunResults results = recalled(perplexities);
    ASSERT_TRUE(results.best().has_value());
    EXPECT_EQ(results.best()->perplexity, 700);
    EXPECT_EQ(results.best()->epoch, 3);
    EXPECT_FALSE(results.over()) << "a loss of 1 is below the target, and is no perplexity";
    results.Note(AtEpoch(4), Split::kValidation, Sentences(600));
    EXPECT_EQ(results.best()->perplexity, 600);
  }
  const RunResults never = recalled({HUGE_VAL, HUGE_VAL, HUGE_VAL});
  EXPECT_FALSE(never.best().has_value());
  EXPECT_TRUE(never.OutOfPatience());
}

// Lines in a checkpoint restore the results, including the exact values of all numbers.
TEST(RunResults, AreTheSameFromTheLinesThatACheckpointKeeps) {
  RunResults results({"accuracy", "top5"}, {.target = 0.7, .patience = 2});
  results.Note(AtEpoch(1), Split::kValidation, Classes(1.0 / 3, 0.1), 0.25);
  results.Note(AtEpoch(2), Split::kValidation, Classes(0.7, 1), 1e-300);
  results.Note(AtEpoch(3), Split::kValidation, Classes(0.6), 0.25);
  Evaluation of_best = Classes(0.65);
  of_best.step = 20;
  results.Note(AtEpoch(3), Split::kTest, of_best);
  const std::string text = ToJson(RunSoFar{.seconds = 1, .evaluations = results.lines()});
  RunResults again({"accuracy", "top5"}, {.target = 0.7, .patience = 2});
  RecallEvaluations(RunSoFarFrom(text), 30, again);
  EXPECT_EQ(again.best()->step, results.best()->step);
  EXPECT_EQ(again.best()->accuracy, 0.7);
  EXPECT_TRUE(again.over());
  EXPECT_EQ(again.target(80, 8)->seconds, results.target(80, 8)->seconds);
  EXPECT_TRUE(again.Has(Split::kTest, 240) && again.Has(Split::kValidation, 240));
  EXPECT_FALSE(again.Has(Split::kValidation, 160));
  Summary summary;
  again.Describe({.epoch_samples = 80, .batch = 8}, 30, summary);
  EXPECT_EQ(summary.test->step, 20);
  // Evaluations after the checkpoint are left out.
  RunResults first({"accuracy", "top5"});
  RecallEvaluations(RunSoFarFrom(text), 10, first);
  EXPECT_EQ(first.lines().size(), 1u);
  EXPECT_EQ(first.lines()[0], results.lines()[0]);
}

TEST(RunResults, TheFirstEvaluationDecidesByWhatTheRunIsEvaluated) {
  RunResults losses;
  losses.Note(AtEpoch(1), Split::kTest, {.loss = 3});
  losses.Note(AtEpoch(2), Split::kTest, {.loss = 2, .perplexity = 7});
  EXPECT_EQ(losses.best()->epoch, 2);
  EXPECT_EQ(losses.best()->measure(), Criterion::kLoss);
  RunResults text;
  text.Note(AtEpoch(1), Split::kTest, Sentences(7));
  text.Note(AtEpoch(2), Split::kTest, {.loss = 1});
  EXPECT_EQ(text.best()->epoch, 1);
  EXPECT_EQ(text.best()->value(), 7);
}

TEST(RunResults, WhatIsNotFiniteIsNeverBest) {
  RunResults results({}, {.patience = 2});
  results.Note(AtEpoch(1), Split::kTest, {.loss = std::nan("")});
  EXPECT_FALSE(results.best().has_value());
  results.Note(AtEpoch(2), Split::kTest, {.loss = 0.5});
  EXPECT_EQ(results.best()->epoch, 2);
  results.Note(AtEpoch(3), Split::kTest, {.loss = std::nan("")});
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_FALSE(results.over());
  results.Note(AtEpoch(4), Split::kTest, {.loss = -HUGE_VAL});
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_TRUE(results.OutOfPatience());
}

// A run whose samples are used up is finished only if its summary says that it ended there: a summary of an earlier
// end, of a failed run, or an invalid one does not count.
TEST(RunResults, ARunIsFinishedWhereItsSummarySaysSo) {
  const TempFolder path;
  const RunFolder folder(path.path());
  const BoundarySchedule rule{.epoch_samples = 80, .batch = 8, .last_samples = 160};
  const auto finished = [&](int64_t samples) {
    return IsFinished(folder, OfClasses(), samples, rule);
  };
  EXPECT_FALSE(finished(160)) << "no summary";
  for (const char* text :
       {"", "[1]", "3", R"({"steps": 20})", R"({"status": "completed"})",
        R"({"status": "failed", "steps": 20})", R"({"status": "completed", "steps": 10})",
        R"({"status": "completed", "steps": 30})"}) {
    path.Write("summary.json", text);
    EXPECT_FALSE(finished(160)) << text;
  }
  path.Write("summary.json", R"({"status": "completed", "steps": 20})");
  EXPECT_TRUE(finished(160));
  EXPECT_FALSE(finished(159)) << "before its end";
  path.Write("summary.json", R"({"status": "completed", "steps": 0})");
  EXPECT_FALSE(IsFinished(folder, OfClasses(), 0, {})) << "nothing was trained yet";
}

}  // namespace
}  // namespace dtrain
