// Tests evaluations between epochs, and real, resumed and simulated runs that end before their last epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>

#include "framework/core/file.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/rewrite_checkpoint.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/send_signal.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EarlyEndTest : public RunFixture {
 protected:
  // An epoch has 7 steps: 400 samples in batches of 64.
  RunConfig Config(const std::string& output, int workers,
                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> overrides = {"output=" + (folder_ / output).string(),
                                          fmt::format("cluster.workers={}", workers)};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document =
        config::Document::FromText("model: {name: " DTRAIN_SOURCE_DIR
                                   "/configs/models/lenet5.yaml}\n"
                                   "data: {name: digits, train_samples: 400, test_samples: 300}\n"
                                   "batch: 64\nepochs: 3\nthreads: 1\nlog_first_steps: 100\n"
                                   "solver: {name: sgd, lr: 0.02, momentum: 0.9}\n",
                                   "run.yaml", overrides);
    return ReadRunConfig(document);
  }

  // Returns the content of each file in a run's folder.
  std::map<std::string, std::string> FilesOf(const std::string& output) const {
    std::map<std::string, std::string> files;
    for (const auto& file : fs::recursive_directory_iterator(folder_ / output)) {
      if (file.is_regular_file()) files[file.path().string()] = ReadFile(file.path());
    }
    return files;
  }
  std::vector<int64_t> EvaluatedSteps(const std::string& output) const {
    std::vector<int64_t> steps;
    for (const auto& line : Lines(output, "evaluation")) steps.push_back(line["step"]);
    return steps;
  }
  // Returns "step: loss" of each evaluation.
  std::vector<std::string> Evaluations(const std::string& output) const {
    std::vector<std::string> evaluations;
    for (const auto& line : Lines(output, "evaluation")) {
      evaluations.push_back(fmt::format("{}: {}", line["step"].dump(), line["loss"].dump()));
    }
    return evaluations;
  }

  // Returns an accuracy that the run of Config reaches at its second evaluation, with one every 4 steps.
  double Reachable() {
    Run(Config("probe", 1, {"evaluate.every_steps=4", "max_steps=20"}));
    const auto lines = Lines("probe", "evaluation");
    double first = lines.at(0)["accuracy"], best = 0;
    for (const auto& line : lines) best = std::max<double>(best, line["accuracy"]);
    EXPECT_GT(best, first) << "it must learn something for the tests below";
    return best;
  }
};

TEST_F(EarlyEndTest, EvaluationsByStepsComeBesideThoseByEpochsAndChangeNoBit) {
  const std::string weights = Run(Config("plain", 1)).summary.weights_sha256;
  for (const int workers : {1, 2}) {
    const std::string output = fmt::format("run{}", workers);
    const TrainResult result = Run(Config(output, workers, {"evaluate.every_steps=5"}));
    EXPECT_THAT(EvaluatedSteps(output), ElementsAre(5, 7, 10, 14, 15, 20, 21));
    if (workers == 1) {
      EXPECT_EQ(result.summary.weights_sha256, weights);
    }
    ASSERT_TRUE(result.summary.best && result.summary.best->step);
    EXPECT_EQ(result.summary.best->epoch, (*result.summary.best->step - 1) / 7 + 1);
    EXPECT_FALSE(result.summary.target.has_value());
  }
  Run(Config("alone", 1, {"evaluate.every_steps=5", "evaluate.every_epochs=0"}));
  EXPECT_THAT(EvaluatedSteps("alone"), ElementsAre(5, 10, 15, 20, 21));
}

TEST_F(EarlyEndTest, ProgressNamesTheStepWhereEvaluationsGoBySteps) {
  ::testing::internal::CaptureStderr();
  Run(Config("run", 1, {"evaluate.every_steps=5", "max_steps=7"}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("epoch 1, step 5: test loss "), HasSubstr("epoch 1, step 7: test")));
}

TEST_F(EarlyEndTest, AnAsynchronousRunIsEvaluatedAtTheFirstBoundaryBehindItsSteps) {
  const Summary summary =
      Run(Config("run", 2,
                 {"strategy=ps_asp", "evaluate.every_steps=5", "evaluate.every_epochs=0"}))
          .summary;
  const std::vector<int64_t> steps = EvaluatedSteps("run");
  // Evaluations are due after 5, 10, 15 and 20 steps and at the end, after 21; steps that start while the boundary
  // message is in flight are applied too, and may move the one after 20 to the end.
  ASSERT_GE(steps.size(), 4u);
  ASSERT_LE(steps.size(), 5u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(steps[i], 5.0 * (i + 1.0), 1.5);
  EXPECT_EQ(summary.status, "completed");
}

TEST_F(EarlyEndTest, AResumedRunHasTheEvaluationsOfAnUndisturbedOne) {
  const std::vector<std::string> keys = {"evaluate.every_steps=4", "checkpoint.every_steps=3"};
  Run(Config("whole", 2, keys));
  std::vector<std::string> first = keys;
  first.push_back("max_steps=9");
  Run(Config("parts", 2, first));
  fs::remove(folder_ / "parts" / "summary.json");
  Run(Config("parts", 2, keys), {.resume = "auto"});
  // The first part of the run was also evaluated at its end.
  std::vector<std::string> parts = Evaluations("parts");
  std::erase_if(parts, [](const std::string& line) { return line.starts_with("9:"); });
  EXPECT_EQ(parts, Evaluations("whole"));
}

TEST_F(EarlyEndTest, ARunEndsWhereItReachesItsTarget) {
  const double target = Reachable();
  for (const int workers : {1, 2}) {
    const std::string output = fmt::format("run{}", workers);
    const TrainResult result = Run(Config(output, workers,
                                          {"evaluate.every_steps=4", "evaluate.every_epochs=0",
                                           fmt::format("stop.target={}", target), "epochs=20"}));
    const Summary& summary = result.summary;
    EXPECT_EQ(result.code, ExitCode::kDone);
    EXPECT_EQ(summary.status, "completed");
    ASSERT_TRUE(summary.target && summary.target->reached) << workers;
    EXPECT_GE(*summary.test->accuracy, target);
    EXPECT_EQ(*summary.target->steps, summary.steps) << "it ended there";
    EXPECT_EQ(*summary.target->epochs, summary.epochs);
    EXPECT_GT(*summary.target->seconds, 0);
    EXPECT_LT(*summary.target->seconds, summary.seconds);
    EXPECT_LT(summary.epochs, 20);
    // The checkpoint is saved as at any other end.
    const auto saved = Lines(output, "checkpoint");
    ASSERT_FALSE(saved.empty());
    EXPECT_EQ(saved.back()["step"], EvaluatedSteps(output).back());
    EXPECT_THAT(TargetText(summary), HasSubstr("reached the target accuracy of "));
  }
}

TEST_F(EarlyEndTest, ATargetThatIsNotReachedIsSaidInPlainWords) {
  const TrainResult result = Run(Config("run", 2, {"stop.target=1", "max_steps=8"}));
  EXPECT_EQ(result.code, ExitCode::kDone);
  ASSERT_TRUE(result.summary.target.has_value());
  EXPECT_FALSE(result.summary.target->reached);
  EXPECT_FALSE(result.summary.target->seconds.has_value());
  EXPECT_EQ(TargetText(result.summary),
            fmt::format("did not reach the target accuracy of 100.00 % (best: {:.2f} %)",
                        100 * *result.summary.best->accuracy));
}

// Includes strategies whose actors hold gradients between boundaries.
const std::vector<std::vector<std::string>> kStrategies = {
    {"strategy=allreduce"},
    {"strategy={name: inhad}", "cluster.per_node=2", "strategy.record=true"},
    {"strategy={name: gssp, servers: 2, exchange_every: 5}"},
    {"strategy={name: gssp, servers: 2, exchange_every: 5}", "compress={name: gdtopk}"},
    {"strategy={name: local_sgd, period: 3}"}};

std::vector<std::string> Joined(std::vector<std::string> keys,
                                const std::vector<std::string>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

TEST_F(EarlyEndTest, ARunThatEndedAtItsTargetIsLeftAsItIsWhenItIsResumed) {
  const std::vector<std::string> keys = {"evaluate.every_steps=4", "stop.target=0.05", "epochs=20"};
  for (size_t i = 0; i < kStrategies.size(); ++i) {
    SCOPED_TRACE(kStrategies[i].front());
    const std::string output = fmt::format("run{}", i);
    const RunConfig config = Config(output, 4, Joined(keys, kStrategies[i]));
    const Summary first = Run(config).summary;
    ASSERT_TRUE(first.target && first.target->reached) << "a twentieth is less than chance";
    const std::map<std::string, std::string> files = FilesOf(output);
    ::testing::internal::CaptureStderr();
    const TrainResult again = Run(config, {.resume = "auto"});
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("nothing to do: the run in " + config.output +
                          " is complete: its target is reached (step "));
    EXPECT_TRUE(again.finished_before);
    EXPECT_EQ(again.code, ExitCode::kDone);
    EXPECT_EQ(FilesOf(output), files);
    // A run that was killed before it wrote its summary ends with the weights that it had.
    fs::remove(folder_ / output / "summary.json");
    const TrainResult last = Run(config, {.resume = "auto"});
    EXPECT_FALSE(last.finished_before);
    EXPECT_EQ(last.summary.weights_sha256, first.weights_sha256);
    EXPECT_EQ(last.summary.steps, first.steps);
    EXPECT_EQ(last.summary.target->seconds, first.target->seconds);
    EXPECT_EQ(last.summary.status, "completed");
  }
  // With a higher target the run continues.
  const std::vector<std::string> higher = {"evaluate.every_steps=4", "stop.target=1", "epochs=20",
                                           "max_steps=12"};
  EXPECT_EQ(Run(Config("run0", 4, higher), {.resume = "auto"}).summary.steps, 720 / 64.0);
}

TEST_F(EarlyEndTest, ARunThatReachedItsLastEpochIsLeftAsItIsWhenItIsResumed) {
  const RunConfig config = Config("run", 2, {"epochs=1", "strategy=ps_asp"});
  Run(config);
  const std::map<std::string, std::string> files = FilesOf("run");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Run(config, {.resume = "auto"}).finished_before);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(" of 1 epoch (step "));
  EXPECT_EQ(FilesOf("run"), files);
  // With more epochs the run is not finished, and its old summary does not prevent a resume.
  const TrainResult more =
      Run(Config("run", 2, {"epochs=2", "strategy=ps_asp"}), {.resume = "auto"});
  EXPECT_FALSE(more.finished_before);
  EXPECT_GE(more.summary.epochs, 2);
}

TEST_F(EarlyEndTest, AResumeSaysWhyThereIsNothingToDo) {
  const auto resumed = [&](const std::string& output, const std::vector<std::string>& keys) {
    const RunConfig config = Config(output, 1, keys);
    Run(config);
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(Run(config, {.resume = "auto"}).finished_before);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(resumed("whole", {"epochs=1"}),
              HasSubstr("is complete: 1 of 1 epoch (step 7); with more epochs (--set epochs=N) it "
                        "goes on"));
  EXPECT_THAT(resumed("short", {"max_steps=4"}),
              HasSubstr("is complete: step 4 of 4; with a higher max_steps it goes on"));
  EXPECT_THAT(
      resumed("idle", {"solver.lr=1e-12", "evaluate.every_steps=2", "stop.patience=3"}),
      HasSubstr("is complete: 3 evaluations in a row were no better than the best (step 7); with a "
                "higher stop.patience it goes on"));
}

// The run was killed before it could write its summary.
TEST_F(EarlyEndTest, AResumeThatIsOverAtOnceSaysWhy) {
  Run(Config("run", 1, {"max_steps=5", "evaluate.every_steps=4"}));
  fs::remove(folder_ / "run" / "summary.json");
  ::testing::internal::CaptureStderr();
  const TrainResult result =
      Run(Config("run", 1, {"epochs=3", "evaluate.every_steps=4", "stop.target=0.01"}),
          {.resume = "auto"});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the run ends here: its target is reached"));
  EXPECT_EQ(result.summary.steps, 5);
  ASSERT_TRUE(result.summary.train_loss.has_value()) << "of the steps before it";
  EXPECT_EQ(*result.summary.train_loss, Lines("run", "step").back()["loss"].get<double>());
}

// An evaluation after the checkpoint from which a run resumes does not end the run: it is repeated.
TEST_F(EarlyEndTest, WhatWasEvaluatedBehindTheCheckpointDoesNotCount) {
  const std::vector<std::string> keys = {"evaluate.every_steps=4", "checkpoint.every_steps=3",
                                         "stop.target=0.05", "checkpoint.keep=9"};
  Run(Config("run", 1, keys));
  fs::remove(folder_ / "run/checkpoints/step-00000004.h5");
  const TrainResult again = Run(Config("run", 1, keys), {.resume = "auto"});
  EXPECT_FALSE(again.finished_before);
  EXPECT_EQ(EvaluatedSteps("run"), std::vector<int64_t>{4});
  EXPECT_EQ(again.summary.steps, 4);
}

TEST_F(EarlyEndTest, ASimulatedRunThatEndedEarlyKeepsItsWeightsWhenItIsResumed) {
  const std::vector<std::string> keys = {"evaluate.every_steps=4", "stop.target=0.05", "epochs=20",
                                         "cluster.jitter=0.3", "cluster.step_seconds=0.01"};
  for (size_t i = 0; i < kStrategies.size(); ++i) {
    SCOPED_TRACE(kStrategies[i].front());
    const RunConfig config = Config(fmt::format("sim{}", i), 4, Joined(keys, kStrategies[i]));
    std::string weights[2];
    for (int part = 0; part < 2; ++part) {
      SimulatedRun run(config, std::nullopt, true);
      const auto step = run.KeepCheckpoints(config.output, part == 0 ? "none" : "auto");
      EXPECT_EQ(step.has_value(), part == 1);
      EXPECT_FALSE(part == 1 && run.IsFinished()) << "it has no summary";
      fs::create_directories(config.output);
      weights[part] = run.Run().weights_sha256;
    }
    EXPECT_EQ(weights[1], weights[0]);
  }
}

// The time before a resume counts; the checkpoint stores it.
TEST_F(EarlyEndTest, TheTimeToATargetCountsWhatCameBeforeAResume) {
  const std::vector<std::string> keys = {"evaluate.every_steps=4", "evaluate.every_epochs=0",
                                         fmt::format("stop.target={}", Reachable()), "epochs=20"};
  std::vector<std::string> first = keys;
  first.push_back("max_steps=3");
  EXPECT_FALSE(Run(Config("run", 1, first)).summary.target->reached);
  EXPECT_GT(Lines("run", "checkpoint").back()["training_seconds"], 0);
  RewriteCheckpoint(folder_ / "run", [](CheckpointInfo& info) {
    RunSoFar so_far = RunSoFarFrom(info.so_far);
    so_far.seconds = 3000;
    so_far.training_seconds = 1000;
    info.so_far = ToJson(so_far);
  });
  const Summary summary = Run(Config("run", 1, keys), {.resume = "auto"}).summary;
  ASSERT_TRUE(summary.target && summary.target->reached);
  EXPECT_GT(*summary.target->seconds, 1000);
  EXPECT_LT(*summary.target->seconds, 1000 + summary.seconds - 3000);
  EXPECT_GT(summary.seconds, 3000);
  EXPECT_GT(Lines("run", "evaluation").back()["seconds"], 3000);
}

TEST_F(EarlyEndTest, PatienceEndsARunThatGetsNoBetter) {
  for (const int workers : {1, 2}) {
    ::testing::internal::CaptureStderr();
    const std::string output = fmt::format("run{}", workers);
    // The learning rate is so small that no evaluation is better than the first.
    const TrainResult result = Run(
        Config(output, workers, {"solver.lr=1e-12", "evaluate.every_steps=2", "stop.patience=3"}));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("the run ends here: 3 evaluations in a row were no better"));
    EXPECT_EQ(result.code, ExitCode::kDone);
    EXPECT_EQ(result.summary.status, "completed");
    EXPECT_THAT(EvaluatedSteps(output), ElementsAre(2, 4, 6, 7));
    EXPECT_EQ(Lines(output, "checkpoint").back()["step"], 7);
    EXPECT_FALSE(result.summary.target.has_value());
  }
}

TEST_F(EarlyEndTest, AnyStrategyEndsAtItsTarget) {
  for (const char* strategy :
       {"ps_bsp", "ps_ssp", "ps_asp", "gssp", "inhad", "easgd", "local_sgd"}) {
    const Summary summary = Run(Config(strategy, 2,
                                       {fmt::format("strategy={}", strategy),
                                        "evaluate.every_steps=4", "stop.target=0.05", "epochs=20"}))
                                .summary;
    EXPECT_TRUE(summary.target && summary.target->reached) << strategy;
    EXPECT_LT(summary.epochs, 1) << strategy;
    EXPECT_EQ(summary.status, "completed");
    EXPECT_FALSE(Lines(strategy, "checkpoint").empty()) << strategy;
  }
}

TEST_F(EarlyEndTest, ASimulatedRunIsEvaluatedAndEndsAsARealOne) {
  const std::vector<std::string> keys = {"evaluate.every_steps=4",
                                         fmt::format("stop.target={}", Reachable()), "epochs=20",
                                         "evaluate.every_epochs=0"};
  const Summary real = Run(Config("real", 2, keys)).summary;
  std::vector<std::string> paced = keys;
  paced.push_back("cluster.step_seconds=0.5");
  const RunConfig config = Config("sim", 2, paced);
  std::vector<int64_t> steps;
  const Summary simulated =
      SimulatedRun(config, std::nullopt, true)
          .Run([&](const MetricsPoint& at, Split, const Evaluation&) { steps.push_back(at.step); });
  EXPECT_EQ(simulated.weights_sha256, real.weights_sha256);
  EXPECT_EQ(steps, EvaluatedSteps("real"));
  EXPECT_EQ(simulated.best->step, real.best->step);
  EXPECT_EQ(simulated.status, "completed");
  ASSERT_TRUE(simulated.target && simulated.target->reached);
  EXPECT_EQ(*simulated.target->steps, *real.target->steps);
  EXPECT_EQ(*simulated.target->seconds, simulated.seconds) << "virtual ones";
  EXPECT_GE(simulated.seconds, 0.5 * static_cast<double>(steps.back()));
}

TEST_F(EarlyEndTest, ASimulatedRunHasPatienceAndAGhostKnowsNoTarget) {
  const RunConfig config =
      Config("sim", 2,
             {"strategy=ps_asp", "solver.lr=1e-12", "evaluate.every_steps=2", "stop.patience=3"});
  const Summary numeric = SimulatedRun(config, std::nullopt, true).Run();
  EXPECT_NEAR(numeric.steps, 8, 2);
  EXPECT_EQ(numeric.status, "completed");
  const Summary ghost = SimulatedRun(config, std::nullopt, false).Run();
  EXPECT_GE(ghost.epochs, 3);
}

}  // namespace
}  // namespace dtrain
