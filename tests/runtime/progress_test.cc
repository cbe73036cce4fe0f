#include "framework/results/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class ProgressTest : public testing::Test {
 protected:
  // A display that rewrites its line, or one for a log.
  ProgressDisplay Display(bool rewritten) {
    return {rewritten, [this](const ProgressDisplay::Parts& parts) {
              shown_.push_back(status_line::Fit(parts, columns_));
            }};
  }
  static void Begin(Progress& progress) {
    progress.Begin({.epochs = 10, .steps = 1000, .batch = 64}, {.epoch = 1});
    progress.Do(Doing::kTraining, 0);
  }

  int columns_ = 100;
  std::vector<std::string> shown_;
};

TEST_F(ProgressTest, ShowsRateLossAndTimeLeft) {
  Progress progress(0, Display(true));
  Begin(progress);
  progress.Update({1, 100, 0.5}, FromSeconds(10));
  EXPECT_TRUE(shown_.empty()) << "no rate is known yet";
  progress.Update({1, 200, 0.25}, FromSeconds(11));
  EXPECT_THAT(shown_, ElementsAre("epoch 1/10  step 200/1000  ##------------  6400 samples/s  loss "
                                  "0.25  8.0 s left"));
}

TEST_F(ProgressTest, ShowsAtMostFiveTimesASecond) {
  Progress progress(0, Display(true));
  Begin(progress);
  for (int i = 0; i <= 200; ++i) {
    progress.Update({1, i, 1}, FromSeconds(0.01 * i));
    progress.Tick(FromSeconds(0.01 * i));
  }
  EXPECT_GE(shown_.size(), 8U);
  EXPECT_LE(shown_.size(), 11U);
}

TEST_F(ProgressTest, NamesTheSlowestRank) {
  Progress progress(0, Display(true));
  Begin(progress);
  progress.Update({1, 1, 1, 2}, 0);
  progress.Update({1, 2, 1, 2}, FromSeconds(1));
  EXPECT_THAT(shown_.at(0), HasSubstr("  slowest rank 2"));
}

TEST_F(ProgressTest, TheBarIsEmptyAtFirstAndFullAtLast) {
  for (const auto& [step, bar] : {std::pair(0, "--------------"),
                                  {71, "--------------"},
                                  {72, "#-------------"},
                                  {999, "#############-"},
                                  {1000, "##############"},
                                  {1001, "##############"}}) {
    shown_.clear();
    Progress progress(0, Display(true));
    Begin(progress);
    progress.Update({1, step - 1, 1}, 0);
    progress.Update({1, step, 1}, FromSeconds(1));
    EXPECT_THAT(shown_.at(0), HasSubstr(std::string("  ") + bar + "  ")) << step;
  }
}

TEST_F(ProgressTest, FitsEveryWidthAndKeepsTheStepLongest) {
  Progress progress(0, Display(true));
  progress.Begin({.epochs = 100, .steps = 1'000'000, .batch = 64}, {.epoch = 1});
  progress.Update({100, 201'900, 123.4, 12}, FromSeconds(19));
  for (columns_ = 20; columns_ <= 200; ++columns_) {
    const int i = columns_;
    progress.Update({100, 200'000 + 100 * i, 123.4, 12}, FromSeconds(i));
    EXPECT_LE(shown_.back().size(), static_cast<size_t>(columns_));
    EXPECT_THAT(shown_.back(), HasSubstr("step 2")) << columns_;
    EXPECT_THAT(shown_.back(), HasSubstr("/1000000")) << columns_;
  }
  EXPECT_THAT(shown_.back(), EndsWith("slowest rank 12"));
  columns_ = 77;  // of 80 columns
  progress.Tick(FromSeconds(201));
  EXPECT_EQ(shown_.back(),
            "epoch 100/100  step 220000/1000000  6400 samples/s  loss 123.4  2:10:00 left");
  columns_ = 37;  // of 40 columns
  progress.Tick(FromSeconds(202));
  EXPECT_EQ(shown_.back(), "step 220000/1000000  2:10:00 left");
}

TEST_F(ProgressTest, PausesDoNotCount) {
  Progress progress(0, Display(true));
  Begin(progress);
  progress.Update({1, 0, 1}, 0);
  progress.Update({1, 100, 1}, FromSeconds(1));
  progress.Do(Doing::kEvaluating, FromSeconds(1));
  progress.Do(Doing::kTraining, FromSeconds(50));
  progress.Update({1, 100, 1}, FromSeconds(50));
  progress.Update({1, 200, 1}, FromSeconds(51));
  EXPECT_THAT(shown_.back(), HasSubstr("6400 samples/s"));
}

TEST_F(ProgressTest, SaysWhatElseTheRunDoes) {
  Progress progress(0, Display(true));
  progress.Tick(FromSeconds(0.9));
  EXPECT_TRUE(shown_.empty()) << "a moment is not worth a line";
  progress.Tick(FromSeconds(1.5));
  progress.Begin({.epochs = 10, .steps = 1000, .batch = 64}, {.epoch = 1});
  progress.Do(Doing::kTraining, FromSeconds(2));
  progress.Tick(FromSeconds(4));
  progress.Update({1, 1, 1}, FromSeconds(5));
  progress.Do(Doing::kEvaluating, FromSeconds(6));
  progress.Tick(FromSeconds(68));
  progress.Do(Doing::kCheckpointing, FromSeconds(69));
  progress.Tick(FromSeconds(71));
  EXPECT_THAT(shown_, ElementsAre("loading data for 1 s",
                                  "epoch 1/10  step 0/1000  training step 1 for 2 s",
                                  "epoch 1/10  step 1/1000  evaluating for 1:02",
                                  "epoch 1/10  step 1/1000  writing a checkpoint for 2 s"));
}

TEST_F(ProgressTest, IsRedrawnWhileAStepTakesLongAndThenSaysSo) {
  Progress progress(0, Display(true));
  Begin(progress);
  progress.Update({1, 1, 1}, 0);
  progress.Update({1, 2, 1}, FromSeconds(1));
  columns_ = 30;  // the terminal has become narrow
  progress.Tick(FromSeconds(1.2));
  EXPECT_EQ(shown_.back(), "step 2/1000  16:38 left");
  columns_ = 100;
  progress.Tick(FromSeconds(12));
  EXPECT_EQ(shown_.back(), "epoch 1/10  step 2/1000  training step 3 for 11 s");
}

TEST_F(ProgressTest, TheLogHasALineAMinuteWhateverTheRunDoes) {
  Progress progress(0, Display(false));
  int lines = 0;
  const auto expect_a_line_a_minute = [&](int begin, int end, const char* what) {
    for (int minute = begin; minute < end; minute += 60) {
      shown_.clear();
      for (int second = minute; second < minute + 60; ++second) progress.Tick(FromSeconds(second));
      EXPECT_THAT(shown_, Not(testing::IsEmpty())) << what << " at " << minute;
      EXPECT_THAT(shown_, SizeIs(testing::Le(2U)));
      lines += static_cast<int>(shown_.size());
      for (const std::string& line : shown_) EXPECT_THAT(line, HasSubstr(what));
    }
  };
  expect_a_line_a_minute(0, 180, "loading data for");
  progress.Begin({.epochs = 10, .steps = 1000, .batch = 64}, {.epoch = 1});
  progress.Do(Doing::kTraining, FromSeconds(180));
  expect_a_line_a_minute(180, 360, "training step 1 for");
  progress.Update({1, 1, 1}, FromSeconds(360));
  expect_a_line_a_minute(360, 540, "training step 2 for");
  progress.Do(Doing::kEvaluating, FromSeconds(540));
  expect_a_line_a_minute(540, 720, "evaluating for");
  EXPECT_GE(lines, 12);
}

TEST_F(ProgressTest, TheLogHasALineOfStepsNowAndThen) {
  Progress progress(0, Display(false));
  Begin(progress);
  for (int second = 0; second <= 40; ++second) {
    progress.Update({1, second, 1}, FromSeconds(second));
    progress.Tick(FromSeconds(second));
  }
  EXPECT_THAT(shown_, ElementsAre(HasSubstr("  step 1/1000  "), HasSubstr("  step 31/1000  ")));
}

TEST_F(ProgressTest, NothingIsShownBehindTheEnd) {
  Progress progress(0, Display(true));
  Begin(progress);
  progress.End();
  EXPECT_THAT(shown_, ElementsAre("")) << "wiped";
  progress.Tick(FromSeconds(100));
  EXPECT_THAT(shown_, SizeIs(1));
}

}  // namespace
}  // namespace dtrain
