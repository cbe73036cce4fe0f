// Runs of a schedule by measured times: planned from a file, and chosen by the run itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/stored_checkpoint.h"
#include "framework/core/file.h"
#include "framework/core/model_profile.h"
#include "framework/launch/status_record.h"
#include "framework/launch/stop_signal.h"
#include "framework/simulate/simulated_run.h"
#include "framework/strategies/sync/advice.h"
#include "framework/strategies/sync/merging.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/send_signal.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ScheduleRunTest : public RunFixture {
 protected:
  // Three epochs of 7 steps, unless `more` changes it.
  RunConfig Config(const std::string& output, int workers,
                   const std::vector<std::string>& more = {}) {
    return OnDigits(output,
                    {fmt::format("cluster.workers={}", workers), "data.test_samples=100",
                     "epochs=3", "threads=1"},
                    more);
  }

  std::string Text(const std::string& file) const { return ReadFile(folder_ / file); }
  ExecutionPlan PlanOf(const std::string& output) const {
    return PlanFromJson(Text(output + "/plan.json"), output);
  }
  ModelProfile ProfileOf(const std::string& output) const {
    return ReadProfile(folder_ / output / "profile.json");
  }
  std::string Write(const std::string& file, const ModelProfile& profile) const {
    WriteFileDurably(folder_ / file, ToJson(profile));
    return folder_ / file;
  }
  static std::string By(const std::string& profile) {
    return "strategy={name: mgwfbp, profile: " + profile + "}";
  }

  // A profile of LeNet-5 for this number of workers: each gradient is ready after 1000 s, and any sum takes 100 s.
  std::string SlowProfile(int workers) {
    Run(Config("measured", workers, {"strategy.name=mgwfbp", "max_steps=1"}));
    ModelProfile profile = ProfileOf("measured");
    for (LayerProfile& layer : profile.layers) {
      if (layer.params > 0) layer.ready_seconds = 1000;
    }
    for (SumProfile::Time& time : profile.sums.at(0).times) time.seconds = 100;
    return Write("slow.json", profile);
  }
};

TEST_F(ScheduleRunTest, WhatWasMeasuredCanBeGivenBack) {
  ::testing::internal::CaptureStderr();
  const TrainResult measured = Run(Config("measured", 2, {"strategy.name=mgwfbp"}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("mgwfbp: measuring 20 steps and the sums by ordered"));
  const ModelProfile profile = ProfileOf("measured");
  EXPECT_EQ(profile.model, "lenet5");
  EXPECT_EQ(profile.batch, 32);
  ASSERT_EQ(profile.sums.size(), 1U);
  EXPECT_EQ(profile.sums[0].by, "ordered");
  EXPECT_EQ(profile.sums[0].workers, 2);
  EXPECT_GT(profile.forward_seconds(), 0);
  EXPECT_GT(profile.backward_seconds(), 0);

  ::testing::internal::CaptureStderr();
  const TrainResult given =
      Run(Config("given", 2, {By((folder_ / "measured/profile.json").string())}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("measuring")));
  EXPECT_EQ(given.summary.weights_sha256, measured.summary.weights_sha256);
  const ExecutionPlan before = PlanOf("measured"), plan = PlanOf("given");
  EXPECT_EQ(plan.buckets, before.buckets);
  EXPECT_EQ(plan.measured_for, before.measured_for);
  EXPECT_EQ(plan.predicted_seconds, before.predicted_seconds);
  EXPECT_EQ(plan.compute_seconds, before.compute_seconds);
  EXPECT_EQ(plan.sum_seconds, before.sum_seconds);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "given/profile.json"))
      << "it has measured nothing";
  // A share of twice as many samples takes twice as long.
  Run(Config("twice", 2,
             {By((folder_ / "measured/profile.json").string()), "batch=128", "max_steps=1"}));
  EXPECT_DOUBLE_EQ(PlanOf("twice").compute_seconds, 2 * before.compute_seconds);
}

TEST_F(ScheduleRunTest, ARankSaysThatItMeasures) {
  const auto status = folder_ / "status";
  std::filesystem::create_directories(status);
  // Otherwise no rank could write there.
  std::filesystem::permissions(status, std::filesystem::perms::owner_all);
  ::setenv(kStatusFolderVariable, status.c_str(), 1);
  bool measured = false;
  {
    const std::jthread reader([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (const RankStatus& rank : ReadStatusRecords(status)) {
          measured |= rank.doing == Doing::kMeasuring;
        }
      }
    });
    Run(Config("measured", 2, {"strategy.name=auto", "max_steps=1"}));
  }
  ::unsetenv(kStatusFolderVariable);
  EXPECT_TRUE(measured);
  EXPECT_EQ(NameOf(Doing::kMeasuring), "measuring the model");
}

// A profile has the times of machines without a slowdown.
TEST_F(ScheduleRunTest, WhatWasMeasuredOfSlowWorkersIsNotSlowedDownTwice) {
  const std::string slow = "cluster.slowdown=[1, 4]";
  Run(Config("measured", 2, {"strategy.name=mgwfbp", "max_steps=1", slow}));
  const std::string file = By((folder_ / "measured/profile.json").string());
  const double seconds = PlanOf("measured").compute_seconds;
  double last = 0;
  for (const LayerProfile& layer : ProfileOf("measured").layers) {
    last = std::max(last, layer.ready_seconds.value_or(0));
  }
  EXPECT_DOUBLE_EQ(4 * last, seconds);
  Run(Config("given", 2, {file, "max_steps=1", slow}));
  EXPECT_NEAR(PlanOf("given").compute_seconds, seconds, 1e-9 * seconds);
  Run(Config("fast", 2, {file, "max_steps=1"}));
  EXPECT_NEAR(PlanOf("fast").compute_seconds, seconds / 4, 1e-9 * seconds);
}

// Simulated from the same profile, a run makes the same plan.
TEST_F(ScheduleRunTest, ARunAndASimulationPlanByTheSameTimes) {
  Run(Config("measured", 2, {"strategy.name=mgwfbp", "max_steps=1"}));
  ModelProfile profile = ProfileOf("measured");
  double ready = 5;
  for (auto layer = profile.layers.rbegin(); layer != profile.layers.rend(); ++layer) {
    if (layer->params > 0) layer->ready_seconds = ready += 0.1;
  }
  const std::string file = Write("late.json", profile);
  const RunConfig config =
      Config("run", 2, {By(file), "max_steps=1", "batch=48", "cluster.slowdown=[1, 1.5]"});
  Run(config);
  const LayerGradients layer_gradients =
      SimulatedRun(config, profile, false).PlannedLayerGradients();
  EXPECT_EQ(layer_gradients.ready.back(), PlanOf("run").compute_seconds);
  EXPECT_NEAR(layer_gradients.ready.back(), ready * 1.5 * 24 / 32, 1e-9);
  EXPECT_NEAR(layer_gradients.ready.front(), 5.1 * 1.5 * 24 / 32, 1e-9);
  EXPECT_EQ(PredictStep(layer_gradients, PlanOf("run").buckets), PlanOf("run").predicted_seconds);
}

TEST_F(ScheduleRunTest, AProfileOfSomethingElseIsAConfigError) {
  Run(Config("measured", 2, {"strategy.name=mgwfbp", "max_steps=1"}));
  const ModelProfile good = ProfileOf("measured");
  const auto error_of = [&](const ModelProfile& profile, int workers = 2,
                            const std::vector<std::string>& more = {}) {
    std::vector<std::string> keys = {By(Write("p.json", profile))};
    keys.insert(keys.end(), more.begin(), more.end());
    return MessageOf([&] { Run(Config("refused", workers, keys)); });
  };
  const auto changed = [&](auto change) {
    ModelProfile profile = good;
    change(profile);
    return profile;
  };
  EXPECT_THAT(error_of(changed([](ModelProfile& p) { p.model = "vgg19"; })),
              AllOf(HasSubstr("2: "), HasSubstr("of model 'vgg19', the run's is 'lenet5'")));
  EXPECT_THAT(error_of(changed([](ModelProfile& p) { p.layers.pop_back(), p.layers.pop_back(); })),
              HasSubstr("in other layers, the run's has"));
  EXPECT_THAT(error_of(changed([](ModelProfile& p) { p.device = "cuda"; })),
              HasSubstr("was measured on device 'cuda', the run's is 'cpu'"));
  EXPECT_THAT(error_of(changed([](ModelProfile& p) {
                for (LayerProfile& layer : p.layers) layer.ready_seconds.reset();
              })),
              HasSubstr("does not say when the gradient of layer 'conv1' is ready"));
  EXPECT_THAT(
      error_of(good, 3),
      AllOf(HasSubstr("2: "), HasSubstr("no times of sums by ordered among 3 workers; it has "
                                        "those of ordered among 2 workers")));
  EXPECT_THAT(error_of(good, 2, {"collective=ring"}), HasSubstr("by ring among 2 workers"));
  EXPECT_THAT(error_of(good, 2, {"compress={name: topk, density: 0.01, scope: layer}"}),
              HasSubstr("by topk 0.01 by gather among 2 workers"));
  EXPECT_THAT(error_of(changed([](ModelProfile& p) { p.sums.clear(); })),
              AllOf(HasSubstr("it has none"), HasSubstr("profile.json")));
  EXPECT_THAT(MessageOf([&] { Config("none", 2, {By("nowhere.json")}); }),
              AllOf(HasSubstr("2: "), HasSubstr("there is no profile 'nowhere.json'")));
  // One worker has no sums, and needs no times for them.
  EXPECT_EQ(error_of(good, 1), "no error");
}

TEST_F(ScheduleRunTest, AProfileOfOtherThreadsIsTakenWithAWarning) {
  Run(Config("measured", 2, {"strategy.name=mgwfbp", "max_steps=1"}));
  ModelProfile profile = ProfileOf("measured");
  const auto said = [&](int threads) {
    profile.threads = threads;
    const std::string file = Write("threads.json", profile);
    ::testing::internal::CaptureStderr();
    Run(Config(fmt::format("run{}", threads), 2, {By(file), "max_steps=1"}));
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(1), Not(HasSubstr("was measured with")));
  EXPECT_THAT(said(3), HasSubstr("threads.json was measured with 3 threads a rank, the run has 1"));
}

// The file's times are wrong by orders of magnitude: they decide the buckets and no bit.
TEST_F(ScheduleRunTest, APlanByWrongTimesChangesNoBit) {
  for (const int workers : {2, 3}) {
    const std::string expected = Run(Config("fixed", workers)).summary.weights_sha256;
    const TrainResult result = Run(Config("run", workers, {By(SlowProfile(workers))}));
    EXPECT_EQ(result.summary.weights_sha256, expected) << workers;
    EXPECT_EQ(result.summary.plan->buckets, 1);
    EXPECT_EQ(PlanOf("run").compute_seconds, 1000);
    EXPECT_DOUBLE_EQ(PlanOf("run").sum_seconds, 100);
    for (const char* output : {"fixed", "measured", "run"}) {
      std::filesystem::remove_all(folder_ / output);
    }
  }
}

TEST_F(ScheduleRunTest, AResumedRunKeepsThePlanOfItsCheckpoint) {
  Run(Config("run", 2, {"strategy.name=mgwfbp", "max_steps=10"}));
  const std::string plan = Text("run/plan.json");
  const auto checkpoints = CheckpointFolder(folder_ / "run/checkpoints", 2).List();
  EXPECT_EQ(ReadStoredCheckpoint(checkpoints.at(0), CheckpointPart::kInfo).info.plan_json, plan);
  Run(Config("run", 2, {By(SlowProfile(2))}), {.resume = "auto", .weights = ""});
  EXPECT_EQ(Text("run/plan.json"), plan);
}

TEST_F(ScheduleRunTest, CompressedRunsArePlannedByTimesOfTheirOwnSums) {
  const std::string compress =
      "compress={name: topk, density: 0.05, scope: layer, exchange: oktopk}";
  Run(Config("measured", 2, {"strategy.name=mgwfbp", "max_steps=1", compress}));
  ModelProfile profile = ProfileOf("measured");
  EXPECT_EQ(profile.sums.at(0).by, "topk 0.05 by oktopk");
  for (SumProfile::Time& time : profile.sums[0].times) time.seconds = 100;
  Run(Config("run", 2, {By(Write("slow.json", profile)), "max_steps=1", compress}));
  EXPECT_EQ(PlanOf("run").buckets.size(), 1U);
  EXPECT_DOUBLE_EQ(PlanOf("run").sum_seconds, 100);
}

// ------------------------------------------------------------------ auto

TEST_F(ScheduleRunTest, AutoIsAScheduleByNameFromTheStart) {
  const std::string expected = Run(Config("fixed", 2)).summary.weights_sha256;
  ::testing::internal::CaptureStderr();
  const TrainResult result = Run(Config("run", 2, {"strategy.name=auto"}));
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string name = result.summary.strategy;
  EXPECT_THAT(ScheduleNames(), Contains(name));
  EXPECT_THAT(said, HasSubstr("auto takes " + name + " ("));
  for (const std::string& other : ScheduleNames()) {
    if (other == name) continue;
    EXPECT_THAT(said, HasSubstr(" ms with " + other));
  }
  EXPECT_EQ(result.summary.weights_sha256, expected);
  EXPECT_THAT(Text("run/config.yaml"), HasSubstr("\n  name: " + name + "\n"));
  EXPECT_EQ(result.summary.config_sha256, Config("run", 2, {"strategy.name=" + name}).config_sha256)
      << "as if it had been named";
  EXPECT_EQ(ProfileOf("run").sums.at(0).by, "ordered");
}

TEST_F(ScheduleRunTest, AResumedAutoGoesOnWithItsSchedule) {
  const std::string compress = "compress={name: topk, density: 0.05, scope: layer}";
  const TrainResult whole = Run(Config("whole", 2, {"strategy.name=auto", compress}));
  Run(Config("part", 2, {"strategy.name=auto", compress, "max_steps=9"}));
  const std::string plan = Text("part/plan.json");
  ::testing::internal::CaptureStderr();
  const TrainResult rest =
      Run(Config("part", 2, {"strategy.name=auto", compress}), {.resume = "auto", .weights = ""});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              AllOf(HasSubstr("auto: " + rest.summary.strategy + ", as in the run that is resumed"),
                    Not(HasSubstr("measuring"))));
  EXPECT_EQ(Text("part/plan.json"), plan);
  EXPECT_EQ(rest.summary.weights_sha256, whole.summary.weights_sha256) << "residuals go on as well";
}

TEST_F(ScheduleRunTest, AutoNeedsNoTimesWhereNothingGoesByThem) {
  EXPECT_EQ(Run(Config("one", 1, {"strategy.name=auto", "max_steps=1"})).summary.strategy,
            "allreduce");
  EXPECT_EQ(Run(Config("model", 2,
                       {"strategy.name=auto", "max_steps=1",
                        "compress={name: topk, density: 0.05, scope: model}"}))
                .summary.strategy,
            "single");
}

// auto uses a file too: in this one sums have no start-up cost, so that no schedule merges.
TEST_F(ScheduleRunTest, AutoGoesByAFile) {
  Run(Config("measured", 2, {"strategy.name=mgwfbp", "max_steps=1"}));
  ModelProfile profile = ProfileOf("measured");
  double ready = 0;
  for (auto layer = profile.layers.rbegin(); layer != profile.layers.rend(); ++layer) {
    if (layer->params > 0) layer->ready_seconds = ready += 1;
  }
  profile.sums.at(0).times = {{64, 1e-9}, {64 << 20, 1e-3}};
  const std::string file = Write("p.json", profile);
  const TrainResult result =
      Run(Config("run", 2, {"strategy={name: auto, profile: " + file + "}", "max_steps=1"}));
  EXPECT_EQ(result.summary.strategy, "wfbp");
}

// A plan by measured times contains its schedule; any other plan is identified by its buckets.
TEST_F(ScheduleRunTest, AutoTakesThePlanOfAnotherRunWithoutMeasuring) {
  const auto said = [&](const std::string& output, const std::vector<std::string>& more) {
    ::testing::internal::CaptureStderr();
    Run(Config(output, 2, more));
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string plan = "plan=" + (folder_ / "measured/plan.json").string();
  Run(Config("measured", 2, {"strategy.name=mgwfbp", "max_steps=1"}));
  EXPECT_THAT(said("run", {"strategy.name=auto", "max_steps=1", plan}),
              AllOf(HasSubstr("auto: mgwfbp, as in "), Not(HasSubstr("measuring"))));
  EXPECT_EQ(PlanOf("run"), PlanOf("measured"));
  EXPECT_THAT(Text("run/config.yaml"), HasSubstr("\n  name: mgwfbp\n"));
  // The plan was measured for another collective.
  EXPECT_THAT(said("ring", {"strategy.name=auto", "max_steps=1", plan, "collective=ring"}),
              AllOf(Not(HasSubstr("as in ")), HasSubstr("measuring 20 steps")));
  for (const std::string name : {"wfbp", "single"}) {
    Run(Config(name, 2, {"strategy.name=" + name, "max_steps=1"}));
    const std::string by_rule = "plan=" + (folder_ / name / "plan.json").string();
    EXPECT_THAT(said("by" + name, {"strategy.name=auto", "max_steps=1", by_rule}),
                AllOf(HasSubstr("auto: " + name + ", as in "), Not(HasSubstr("measuring"))));
    EXPECT_EQ(PlanOf("by" + name).buckets, PlanOf(name).buckets);
  }
  EXPECT_THAT(
      MessageOf([&] {
        WriteFileDurably(folder_ / "no.json", "no plan");
        Run(Config("bad", 2, {"strategy.name=auto", "plan=" + (folder_ / "no.json").string()}));
      }),
      AllOf(HasSubstr("2: "), HasSubstr("no.json")));
}

// ------------------------------------------------------------------ stop

TEST_F(ScheduleRunTest, AStopWhileMeasuringEndsTheRunBehindAStep) {
  for (const std::string name : {"mgwfbp", "auto"}) {
    const std::string expected = Run(Config("fixed" + name, 2)).summary.weights_sha256;
    TrainResult stopped;
    ::testing::internal::CaptureStderr();
    {
      const StopSignals signals;
      SendStopSignal(SIGUSR1);
      stopped = Run(Config(name, 2, {"strategy.name=" + name}));
    }
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("asked to stop while measuring"));
    EXPECT_EQ(stopped.code, ExitCode::kStopped);
    EXPECT_EQ(stopped.summary.steps, 1);
    EXPECT_THAT(Text(name + "/plan.json"), Not(HasSubstr("measured_for")));
    ::testing::internal::CaptureStderr();
    const TrainResult rest =
        Run(Config(name, 2, {"strategy.name=" + name}), {.resume = "auto", .weights = ""});
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("measuring 20 steps"));
    EXPECT_EQ(rest.code, ExitCode::kDone);
    EXPECT_EQ(rest.summary.weights_sha256, expected);
  }
}

}  // namespace
}  // namespace dtrain
