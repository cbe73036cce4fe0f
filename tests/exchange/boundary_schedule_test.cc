// Tests of BoundarySchedule: the steps at which a run comes to a boundary.
#include "framework/exchange/boundary_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <vector>

namespace dtrain {
namespace {

using ::testing::ElementsAre;

// 20 samples in batches of 8: 3 steps an epoch, the last one of 4 samples.
constexpr BoundarySchedule kTwoEpochs{.epoch_samples = 20, .batch = 8, .last_samples = 40};

std::vector<int64_t> PausesOf(const BoundarySchedule& rule, int64_t from = 0) {
  std::vector<int64_t> pauses;
  for (int64_t samples = from; samples < rule.last_samples;) {
    samples = rule.NextAfter(samples);
    pauses.push_back(samples);
  }
  return pauses;
}

TEST(BoundarySchedule, WithoutAnythingToDoItPausesAtItsEnd) {
  EXPECT_THAT(PausesOf(kTwoEpochs), ElementsAre(40));
}

TEST(BoundarySchedule, PausesForEvaluationsByStepsAsForCheckpoints) {
  BoundarySchedule rule = kTwoEpochs;
  rule.evaluate_every_steps = 2;
  EXPECT_THAT(PausesOf(rule), ElementsAre(16, 28, 40)) << "2, 4 and 6 steps";
  rule.checkpoint_every_steps = 5;
  EXPECT_THAT(PausesOf(rule), ElementsAre(16, 28, 36, 40));
  rule.evaluate_every_epochs = 1;
  EXPECT_THAT(PausesOf(rule), ElementsAre(16, 20, 28, 36, 40));
}

// A resumed run has its boundaries where the first run would have had them; an asynchronous run may have passed one.
TEST(BoundarySchedule, ThePausesDoNotDependOnWhereARunBegins) {
  BoundarySchedule rule = kTwoEpochs;
  rule.evaluate_every_steps = 2;
  EXPECT_THAT(PausesOf(rule, 8), ElementsAre(16, 28, 40));
  EXPECT_THAT(PausesOf(rule, 16), ElementsAre(28, 40));
  EXPECT_THAT(PausesOf(rule, 19), ElementsAre(28, 40));
}

TEST(BoundarySchedule, WhatNeverComesIsNoPause) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t never : {kMost, kMost - 1, kMost / 2, kMost / 20 + 1}) {
    BoundarySchedule rule = kTwoEpochs;
    rule.evaluate_every_steps = rule.checkpoint_every_steps = never;
    rule.evaluate_every_epochs = rule.checkpoint_every_epochs = never;
    EXPECT_THAT(PausesOf(rule), ElementsAre(40)) << never;
    EXPECT_GT(rule.SamplesOf(never), kMost / 4);
    EXPECT_EQ(rule.SamplesOfEpochs(never), kMost);
  }
  EXPECT_EQ(kTwoEpochs.SamplesOf(kMost / 2), kMost);
}

}  // namespace
}  // namespace dtrain
