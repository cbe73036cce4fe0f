// Tests the parts of the trainer: what is due at a boundary, the position of a run, where its time is spent.

#include <gtest/gtest.h>

#include <cmath>

#include "framework/train/run_accounts.h"
#include "framework/train/run_position.h"
#include "framework/train/training_step.h"

namespace dtrain {
namespace {

// A set of 80 samples in batches of 8.
BoundaryPoint Between(int64_t before, int64_t now) {
  const auto at = [](int64_t step) { return TrainingPosition{step / 10, step, step * 8}; };
  return {at(before), at(now)};
}

TEST(Cadence, EvaluationsFollowEpochs) {
  RunConfig config;
  config.evaluate.every_epochs = 2;
  EXPECT_FALSE(EvaluationDue(config, Between(0, 19)));
  EXPECT_TRUE(EvaluationDue(config, Between(0, 20)));
  EXPECT_FALSE(EvaluationDue(config, Between(20, 30)));
  EXPECT_TRUE(EvaluationDue(config, Between(35, 45))) << "an asynchronous run may step over it";
  config.evaluate.every_epochs = 0;
  BoundaryPoint end = Between(0, 40);
  EXPECT_FALSE(EvaluationDue(config, end));
  end.run_ends = true;
  EXPECT_TRUE(EvaluationDue(config, end));
}

TEST(Cadence, EvaluationsFollowStepsAsWell) {
  RunConfig config;
  config.evaluate.every_epochs = 0;
  config.evaluate.every_steps = 4;
  EXPECT_FALSE(EvaluationDue(config, Between(0, 3)));
  EXPECT_TRUE(EvaluationDue(config, Between(0, 4)));
  EXPECT_TRUE(EvaluationDue(config, Between(7, 9))) << "an asynchronous run may step over it";
  EXPECT_FALSE(EvaluationDue(config, Between(8, 10))) << "the end of an epoch alone is none";
  config.evaluate.every_epochs = 1;
  EXPECT_TRUE(EvaluationDue(config, Between(8, 10)));
}

TEST(Cadence, CheckpointsFollowEpochsStepsAndStops) {
  RunConfig config;
  config.checkpoint = {.every_epochs = 1, .every_steps = 7};
  EXPECT_FALSE(CheckpointDue(config, Between(0, 6), 0));
  EXPECT_TRUE(CheckpointDue(config, Between(0, 7), 0));
  EXPECT_TRUE(CheckpointDue(config, Between(7, 10), 7 * 8));
  EXPECT_FALSE(CheckpointDue(config, Between(7, 10), 10 * 8)) << "it is there already";
  config.checkpoint = {.every_epochs = 0, .every_steps = 0};
  BoundaryPoint stop = Between(0, 3);
  EXPECT_FALSE(CheckpointDue(config, stop, 0));
  stop.stopped = true;
  EXPECT_TRUE(CheckpointDue(config, stop, 0));
  EXPECT_FALSE(CheckpointDue(config, stop, 3 * 8));
}

// 20 samples in batches of 8: 3 steps an epoch, the last with 4 samples.
BoundarySchedule TwoEpochs() { return {.epoch_samples = 20, .batch = 8, .last_samples = 40}; }

TEST(RunPosition, FollowsTheStepsOfAllWorkers) {
  RunPosition position(TwoEpochs(), {.epoch = 0, .step = 1, .samples_applied = 8});
  position.Add({.samples = 8, .loss_sum = 4});
  EXPECT_EQ(position.loss(), 0.5);
  EXPECT_EQ(position.now(), (TrainingPosition{0, 2, 16}));
  position.Add({.samples = 4, .loss_sum = 8});
  EXPECT_EQ(position.now(), (TrainingPosition{1, 3, 20}));
  EXPECT_EQ(position.epoch(), 0) << "the last step was still of the first one";
  EXPECT_EQ(position.samples(), 12);
  EXPECT_EQ(position.epochs(), 1);
  EXPECT_DOUBLE_EQ(position.EpochsBeforeLastBatch(), 16 / 20.0) << "it had 4 samples";
  EXPECT_EQ(position.last_step(), 6);
  EXPECT_FALSE(position.RunEnds());
  position.MoveTo(40);
  EXPECT_TRUE(position.RunEnds());
  EXPECT_EQ(position.epoch(), 1);
}

TEST(RunPosition, HearsOfAsynchronousSteps) {
  RunPosition position(TwoEpochs(), {});
  EXPECT_FALSE(position.UpdateProgress({}));
  EXPECT_TRUE(position.UpdateProgress({.samples_applied = 8, .samples = 8, .loss_sum = 16}));
  EXPECT_EQ(position.loss(), 2);
  EXPECT_FALSE(position.UpdateProgress({.samples_applied = 8, .samples = 8, .loss_sum = 16}));
  EXPECT_TRUE(position.UpdateProgress({.samples_applied = 24, .samples = 24, .loss_sum = 32}));
  EXPECT_EQ(position.loss(), 1);
  EXPECT_EQ(position.now(), (TrainingPosition{1, 3, 24}));
  EXPECT_DOUBLE_EQ(position.EpochsBeforeLastBatch(), 16 / 20.0);
}

// The batch has ten words in 4 sentences; this share has 3 words of one sentence.
TEST(StepReport, CountsSamplesAndTermsAndHasTheMeanLossOfTheTerms) {
  Batch batch;
  batch.samples = 1;
  batch.global_samples = 4;
  batch.terms = 3;
  batch.global_terms = 10;
  StepResult result;
  result.loss_sum = 7.5;
  const StepReport report = ReportOf(result, batch);
  EXPECT_EQ(report.samples, 1);
  EXPECT_EQ(report.global_samples, 4);
  EXPECT_EQ(report.terms, 3);
  EXPECT_EQ(report.global_terms, 10);
  EXPECT_DOUBLE_EQ(report.loss_sum, 3);  // divided by 4 samples, as 7.5 is by 10 words
  batch.terms = 1;
  batch.global_terms = 4;
  EXPECT_EQ(ReportOf(result, batch).loss_sum, 7.5);
}

TEST(NotFinite, NamesTheFirstPlace) {
  ArenaLayout layout;
  layout.entries = {{"fc.bias", {2}, {0, 2}}, {"fc.weight", {3}, {2, 5}}};
  std::vector<float> weights(5), gradients(5);
  EXPECT_EQ(FirstNotFinite(layout, weights.data(), gradients.data()), "the loss");
  weights[4] = std::nanf("");
  EXPECT_EQ(FirstNotFinite(layout, weights.data(), nullptr), "the weights of fc.weight");
  gradients[2] = INFINITY;
  EXPECT_EQ(FirstNotFinite(layout, weights.data(), gradients.data()), "the gradient of fc.weight");
  weights[0] = -INFINITY;
  EXPECT_EQ(FirstNotFinite(layout, weights.data(), gradients.data()), "the weights of fc.bias");
}

TEST(RunAccounts, AddUpSteps) {
  RunAccounts accounts;
  Summary summary;
  accounts.Describe(0, summary);
  EXPECT_FALSE(summary.step_seconds.has_value());
  accounts.AddStep(64, 1e9, 10e9, 13e9, 14e9);  // waited 1 s, computed 3 s, waited 1 s
  accounts.AddStep(64, 0, 20e9, 23e9, 23e9);
  EXPECT_EQ(accounts.training, Nanos(8e9));
  EXPECT_EQ(accounts.compute, Nanos(6e9));
  EXPECT_EQ(accounts.exposed, 0);
  EXPECT_EQ(accounts.steps, 2);
  accounts.Describe(80, summary);
  EXPECT_EQ(summary.samples_per_second, 10);
  EXPECT_EQ(summary.step_seconds->max, 5);
}

TEST(TrainingClock, StandsAtBoundariesAndGoesOnFromBeforeAResume) {
  const auto at = [](double seconds) { return FromSeconds(seconds); };
  TrainingClock clock;
  clock.Start(at(100), 7);
  EXPECT_DOUBLE_EQ(clock.At(at(102)), 9);
  clock.Pause(at(103));
  EXPECT_DOUBLE_EQ(clock.At(at(110)), 10);
  clock.Continue(at(120));
  EXPECT_DOUBLE_EQ(clock.At(at(121)), 11);
}

// A clock too coarse to measure a step gives no rate.
TEST(RunAccounts, ARateNeedsTime) {
  RunAccounts accounts;
  Summary summary;
  EXPECT_EQ(accounts.SamplesPerSecond(5), 5e9);
  accounts.AddStep(64, 0, 10, 10, 10);
  accounts.Describe(5, summary);
  EXPECT_FALSE(summary.step_seconds.has_value());
  accounts.AddStep(64, 0, 10, 11, 11);
  accounts.Describe(5, summary);
  EXPECT_EQ(summary.samples_per_second, 5e9);
  EXPECT_EQ(summary.step_seconds->max, 1e-9);
}

}  // namespace
}  // namespace dtrain
