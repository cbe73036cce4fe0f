// What a run's evaluations come to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/runtime/judge/run_evaluation.h"

namespace dtrain {
namespace {

Evaluation Classes(double accuracy, double top5 = 1) {
  return {.samples = 100, .terms = 100, .loss = 1 - accuracy, .metrics = {accuracy, top5}};
}

Evaluation Sentences(double perplexity) { return {.loss = 1, .perplexity = perplexity}; }

RunResults OfClasses() { return RunResults({"accuracy", "top5"}); }

TEST(RunResults, BestIsTheHighestAccuracyOfTheTestSplitWhereThatIsAll) {
  RunResults results = OfClasses();
  EXPECT_FALSE(results.best().has_value());
  results.Note(1, Split::kTest, Classes(0.5, 0.8));
  results.Note(2, Split::kTest, Classes(0.7, 0.9));
  results.Note(3, Split::kTest, Classes(0.6, 0.95));
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_EQ(results.best()->accuracy, 0.7);
  EXPECT_EQ(results.best()->others, (decltype(BestResult::others){{"top5", 0.9}}));
  EXPECT_EQ(results.test()->accuracy, 0.6) << "the last one";
  EXPECT_EQ(results.test()->loss, 1 - 0.6);
  EXPECT_FALSE(results.validated());
}

TEST(RunResults, TheFirstOfEqualsIsBest) {
  RunResults results = OfClasses();
  for (const int64_t epoch : {1, 2, 3}) results.Note(epoch, Split::kTest, Classes(0.5));
  EXPECT_EQ(results.best()->epoch, 1);
  RunResults text;
  for (const int64_t epoch : {1, 2, 3}) text.Note(epoch, Split::kTest, Sentences(7));
  EXPECT_EQ(text.best()->epoch, 1);
}

TEST(RunResults, TheTestSplitNeverSetsTheBestBesideAValidationSplit) {
  RunResults results = OfClasses();
  results.Note(1, Split::kValidation, Classes(0.5));
  results.Note(2, Split::kValidation, Classes(0.4));
  EXPECT_FALSE(results.test().has_value());
  results.Note(2, Split::kTest, Classes(0.9));
  EXPECT_TRUE(results.validated());
  EXPECT_EQ(results.best()->epoch, 1);
  EXPECT_EQ(results.best()->accuracy, 0.5);
  EXPECT_EQ(results.test()->accuracy, 0.9);
}

TEST(RunResults, BestOfSentencesIsTheLowestPerplexityOfTheValidationSplit) {
  RunResults results;
  results.Note(1, Split::kValidation, Sentences(30));
  results.Note(2, Split::kValidation, Sentences(20));
  results.Note(3, Split::kValidation, Sentences(25));
  results.Note(3, Split::kTest, Sentences(10));
  EXPECT_EQ(results.best()->epoch, 2);
  EXPECT_EQ(results.best()->perplexity, 20);
  EXPECT_EQ(results.test()->perplexity, 10);
}

}  // namespace
}  // namespace dtrain
