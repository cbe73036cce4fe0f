// Tests the metrics of an epoch's training passes, and the counts in a checkpoint with which the files of a resumed run
// continue.
#include "framework/results/trained_epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/results/run_so_far.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TrainedEpoch Found(int64_t samples, double loss_sum = 1) {
  return {.samples = samples, .terms = samples, .loss_sum = loss_sum, .correct = samples / 2};
}

// 7 steps an epoch.
const BoundarySchedule kRule{.epoch_samples = 400, .batch = 64, .last_samples = 4000};

TEST(EpochCounter, InSynchronousRunsTheStepSaysTheEpoch) {
  EpochCounter counter(true, 2);
  for (int64_t step = 0; step < 9; ++step) counter.Add(kRule, step, Found(32));
  const TrainedEpoch trained = counter.Take();
  EXPECT_EQ(trained.epoch, 1);
  EXPECT_EQ(trained.samples, 64) << "the epoch before is over";
  EXPECT_EQ(trained.correct, 32);
  counter.Add(kRule, 9, Found(32));
  EXPECT_EQ(counter.Take().samples, 32) << "since the last call";
  EXPECT_EQ(counter.Take().samples, 0);
}

TEST(EpochCounter, AsynchronousWorkersTakeTheOthersToBeAsFast) {
  EpochCounter counter(false, 2);
  counter.BoundaryAt(0);
  for (int step = 0; step < 8; ++step) counter.Add(kRule, 99, Found(32));
  const TrainedEpoch trained = counter.Take();
  EXPECT_EQ(trained.epoch, 1) << "for the eighth begins behind 7 x 32 x 2 samples";
  EXPECT_EQ(trained.samples, 32);
}

TEST(EpochCounter, AnEpochThatEndsAtABoundaryEndsThereForAll) {
  BoundarySchedule rule = kRule;
  rule.evaluate_every_epochs = 1;
  EpochCounter counter(false, 2);
  counter.BoundaryAt(0);
  for (int step = 0; step < 11; ++step) counter.Add(rule, 99, Found(32));  // one fast worker
  TrainedEpoch trained = counter.Take();
  EXPECT_EQ(trained.epoch, 0);
  EXPECT_EQ(trained.samples, 11 * 32);
  counter.BoundaryAt(416);
  counter.Add(rule, 99, Found(32));
  trained = counter.Take();
  EXPECT_EQ(trained.epoch, 1);
  EXPECT_EQ(trained.samples, 32);
}

TEST(TrainedEpoch, OfTwoEpochsTheLaterOneCounts) {
  TrainedEpoch sum;
  TrainedEpoch part = Found(10, 5);
  sum.Add(part);
  sum.Add(part);
  EXPECT_EQ(sum.samples, 20);
  part.epoch = 2;
  sum.Add(part);
  EXPECT_EQ(sum.epoch, 2);
  EXPECT_EQ(sum.samples, 10);
  sum.Add(Found(10));
  EXPECT_EQ(sum.samples, 10) << "of an epoch before";
  sum.Add({.epoch = 3});
  EXPECT_EQ(sum.epoch, 2) << "nothing was trained of it";
}

TEST(TrainedEpoch, WhereOneDoesNotCountNobodyDoes) {
  TrainedEpoch sum, part = Found(10);
  sum.Add(part);
  part.correct = -1;
  sum.Add(part);
  sum.Add(Found(10));
  EXPECT_EQ(sum.samples, 30);
  EXPECT_EQ(sum.correct, -1);
  EXPECT_EQ(RunSoFarFrom(ToJson(RunSoFar{.epoch = sum})).epoch.correct, -1);
}

TEST(RunSoFar, IsReadAsItWasWritten) {
  RunSoFar before{12.25, 10.1, {3, 320, 321, 1.0 / 3, 299}};
  before.loss = 1e-300;
  before.steps = {.batch = 25, .epoch_samples = 320, .offset = -6};
  before.over = true;
  before.evaluations = {R"({"kind":"evaluation","step":3,"loss":0.1})"};
  const RunSoFar after = RunSoFarFrom(ToJson(before));
  EXPECT_EQ(after.seconds, 12.25);
  EXPECT_EQ(after.training_seconds, 10.1);
  EXPECT_EQ(after.epoch.epoch, 3);
  EXPECT_EQ(after.epoch.samples, 320);
  EXPECT_EQ(after.epoch.terms, 321);
  EXPECT_EQ(after.epoch.loss_sum, 1.0 / 3);
  EXPECT_EQ(after.epoch.correct, 299);
  EXPECT_EQ(after.loss, 1e-300);
  EXPECT_EQ(after.steps.batch, 25);
  EXPECT_EQ(after.steps.epoch_samples, 320);
  EXPECT_EQ(after.steps.offset, -6);
  EXPECT_TRUE(after.over);
  EXPECT_EQ(after.evaluations, before.evaluations);
  EXPECT_TRUE(after.whole);
}

TEST(RunSoFar, WhatIsMissingOrDamagedIsZero) {
  for (const char* text :
       {"", "[]", "{", R"({"seconds":"long","training_seconds":-1})", R"({"seconds":1e300})",
        R"({"epoch":7})", R"({"epoch":{"number":-3,"samples":null,"correct":1e99}})",
        R"({"over":1,"evaluations":{},"steps":[],"loss":"low"})",
        R"({"steps":{"batch":"many","epoch_samples":-1,"offset":1e99}})"}) {
    const RunSoFar so_far = RunSoFarFrom(text);
    EXPECT_EQ(so_far.seconds, 0) << text;
    EXPECT_EQ(so_far.training_seconds, 0) << text;
    EXPECT_EQ(so_far.epoch.epoch, 0) << text;
    EXPECT_EQ(so_far.epoch.samples, 0) << text;
    EXPECT_EQ(so_far.epoch.correct, 0) << text;
    EXPECT_TRUE(so_far.evaluations.empty()) << text;
    EXPECT_FALSE(so_far.loss || so_far.over || so_far.whole) << text;
    EXPECT_EQ(so_far.steps.batch + so_far.steps.epoch_samples + so_far.steps.offset, 0) << text;
  }
}

class TrainedEpochTest : public RunFixture {
 protected:
  RunConfig Config(const std::string& output, const std::vector<std::string>& more) const {
    return OnDigits(output, {"epochs=2", "threads=1", "log_first_steps=100"}, more);
  }
};

// At a learning rate that changes no weight the training passes find what an evaluation finds, with any number of
// workers.
TEST_F(TrainedEpochTest, TheWorkersFindWhatThereIs) {
  std::optional<double> accuracy;
  for (const char* workers : {"1", "2", "3"}) {
    for (const char* strategy : {"allreduce", "ps_bsp"}) {
      SCOPED_TRACE(std::string(workers) + " " + strategy);
      const Summary summary = Run(Config(std::string(workers) + strategy,
                                         {"solver.lr=1e-30", "evaluate.every_epochs=0", "epochs=1",
                                          std::string("cluster.workers=") + workers,
                                          std::string("strategy.name=") + strategy}))
                                  .summary;
      ASSERT_TRUE(summary.train_accuracy && summary.train_mean_loss);
      EXPECT_NEAR(*summary.train_mean_loss, 2.3, 0.1);
      const double correct = *summary.train_accuracy * 400;
      EXPECT_NEAR(correct, std::round(correct), 1e-9) << "of all 400 samples";
      if (!accuracy) accuracy = summary.train_accuracy;
      EXPECT_EQ(summary.train_accuracy, accuracy);
    }
  }
}

TEST_F(TrainedEpochTest, ASimulationFindsTheSame) {
  for (const char* strategy : {"allreduce", "ps_bsp"}) {
    const RunConfig config =
        Config(strategy, {"cluster.workers=2", std::string("strategy.name=") + strategy});
    const Summary real = Run(config).summary;
    const Summary simulated = SimulatedRun(config, std::nullopt, true).Run();
    EXPECT_EQ(real.weights_sha256, simulated.weights_sha256);
    EXPECT_EQ(real.train_accuracy, simulated.train_accuracy);
    EXPECT_EQ(real.train_mean_loss, simulated.train_mean_loss);
    EXPECT_EQ(real.steps, simulated.steps);
    EXPECT_EQ(real.step, simulated.step);
    for (int w = 0; w < 2; ++w) {
      EXPECT_EQ(real.workers_detail[w].steps, simulated.workers_detail[w].steps);
      EXPECT_EQ(real.workers_detail[w].own_steps, simulated.workers_detail[w].own_steps);
    }
  }
}

// The epoch in which the run was stopped is complete in the end.
TEST_F(TrainedEpochTest, AResumedRunKnowsTheEpochThatItGoesOnIn) {
  for (const char* strategy : {"allreduce", "ps_asp"}) {
    SCOPED_TRACE(strategy);
    const std::string name = std::string("strategy.name=") + strategy;
    const Summary whole = Run(Config(std::string("whole") + strategy, {name})).summary;
    const std::string output = std::string("part") + strategy;
    const Summary part = Run(Config(output, {name, "max_steps=10"})).summary;
    const Summary rest = Run(Config(output, {name}), {.resume = "auto"}).summary;
    EXPECT_EQ(rest.weights_sha256, whole.weights_sha256);
    EXPECT_EQ(rest.train_accuracy, whole.train_accuracy);
    EXPECT_NEAR(*rest.train_mean_loss, *whole.train_mean_loss, 1e-12);
    EXPECT_NE(rest.train_accuracy, part.train_accuracy);
    EXPECT_EQ(rest.resumed_step, 10);
    EXPECT_FALSE(whole.resumed_step.has_value());
    EXPECT_GT(rest.seconds, part.seconds);
  }
}

TEST_F(TrainedEpochTest, ASimulationThatIsResumedAsWell) {
  const auto simulate = [&](const std::string& output, const std::string& last) {
    const RunConfig config = Config(
        output, {"strategy.name=ps_asp", "cluster.workers=2", "checkpoint.every_epochs=1", last});
    std::filesystem::create_directories(folder_ / output);
    SimulatedRun run(config, std::nullopt, true);
    run.KeepCheckpoints(folder_ / output, "auto");
    return run.Run();
  };
  const Summary whole = simulate("whole", "max_steps=14");
  simulate("part", "max_steps=10");
  const Summary rest = simulate("part", "max_steps=14");
  EXPECT_FALSE(rest.resumed_step.has_value()) << "it counts from the beginning";
  EXPECT_EQ(rest.step, 14);
  EXPECT_GT(*rest.train_accuracy * 400, 0);
  EXPECT_NEAR(*rest.train_mean_loss, *whole.train_mean_loss, 0.5) << "of the whole second epoch";
}

TEST_F(TrainedEpochTest, AnotherSeedIsSaidToChangeTheBits) {
  Run(Config("run", {"max_steps=7"}));
  const auto resume = [&](const std::string& seed, const std::string& more) {
    testing::internal::CaptureStderr();
    Run(Config("run", {seed, more}), {.resume = "auto"});
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(resume("seed=1", "max_steps=10"), Not(HasSubstr("not bit-equal")));
  EXPECT_THAT(resume("seed=2", "max_steps=14"),
              AllOf(HasSubstr("not bit-equal to the undisturbed run: its seed is 1, now it is 2"),
                    HasSubstr("seed: 1 -> 2")));
}

}  // namespace
}  // namespace dtrain
