// Whole training runs in one process: ranks are threads over the local transport.
#include "framework/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/file.h"
#include "framework/evaluate/evaluator.h"
#include "framework/hdf5/hdf5_file.h"
#include "framework/launch/world.h"
#include "framework/setup/run_setup.h"
#include "framework/solver/solver.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/send_signal.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kStepsOfEpoch = 7;  // 400 samples in batches of 64, the last one has 16

class TrainTest : public RunFixture {
 protected:
  // A small run on digits; `more` are --set overrides.
  RunConfig Config(const std::string& output, int workers,
                   const std::vector<std::string>& more = {}) {
    return OnDigits(output,
                    {fmt::format("cluster.workers={}", workers), "epochs=3", "threads=1",
                     "log_first_steps=100"},
                    more);
  }

  std::vector<double> Losses(const std::string& output) {
    std::vector<double> losses;
    for (const auto& line : Lines(output, "step")) losses.push_back(line["loss"]);
    return losses;
  }
};

TEST_F(TrainTest, LeavesACompleteRunFolder) {
  ::testing::internal::CaptureStderr();
  const TrainResult result = Run(Config("run", 1));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("info lenet5 on digits"), ::testing::Not(HasSubstr("warn"))));
  EXPECT_EQ(result.code, ExitCode::kDone);
  EXPECT_EQ(result.summary.status, "completed");
  EXPECT_DOUBLE_EQ(result.summary.epochs, 3);
  EXPECT_DOUBLE_EQ(result.summary.steps, 3 * 400 / 64.0);
  EXPECT_EQ(result.summary.weights_sha256.size(), 64u);
  EXPECT_EQ(result.summary.collective, "") << "a worker alone has none";
  EXPECT_EQ(Losses("run").size(), 3u * kStepsOfEpoch);
  for (const char* file : {"config.yaml", "plan.json", "metrics.jsonl", "summary.json",
                           "checkpoints/latest", "checkpoints/step-00000021.h5"}) {
    EXPECT_TRUE(fs::exists(folder_ / "run" / file)) << file;
  }
  const auto summary = nlohmann::json::parse(ReadFile(folder_ / "run" / "summary.json"));
  EXPECT_EQ(summary["workers"], 1);
  EXPECT_EQ(summary["strategy"], "allreduce");
  EXPECT_FALSE(summary.contains("communication"));
}

TEST_F(TrainTest, TheLossFalls) {
  Run(Config("run", 1, {"epochs=12"}));
  const std::vector<double> losses = Losses("run");
  EXPECT_NEAR(losses.front(), 2.3026, 0.1);  // ln(10): ten classes, untrained
  EXPECT_LT(losses.back(), 0.5 * losses.front());
}

TEST_F(TrainTest, FourWorkersFollowTheLossesOfOne) {
  Run(Config("one", 1));
  const TrainResult four = Run(Config("four", 4));
  EXPECT_EQ(four.summary.workers_detail.size(), 4u);
  EXPECT_GT(four.summary.communication->bytes_sent, 0);
  const std::vector<double> a = Losses("one"), b = Losses("four");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(b[i], a[i], 1e-5 * a[i]) << "step " << i + 1;
}

TEST_F(TrainTest, RunsRepeatToTheBitWithAnyFusionBytes) {
  const std::string first = Run(Config("a", 3)).summary.weights_sha256;
  EXPECT_EQ(Run(Config("b", 3)).summary.weights_sha256, first);
  EXPECT_EQ(Run(Config("c", 3, {"strategy.fusion_bytes=0"})).summary.weights_sha256, first);
  EXPECT_EQ(Run(Config("d", 3, {"strategy.fusion_bytes=30000"})).summary.weights_sha256, first);
  EXPECT_NE(Run(Config("e", 3, {"seed=2"})).summary.weights_sha256, first);
}

// The plan is made from measured times, so it differs from run to run: a resumed run keeps its first one.
TEST_F(TrainTest, AScheduleByTimesIsMeasuredOnceAndChangesNoBit) {
  const std::string expected = Run(Config("fixed", 2)).summary.weights_sha256;
  const TrainResult whole = Run(Config("whole", 2, {"strategy.name=mgwfbp"}));
  EXPECT_EQ(whole.summary.weights_sha256, expected);
  EXPECT_GT(whole.summary.plan->predicted_seconds.value_or(0), 0);
  Run(Config("part", 2, {"strategy.name=mgwfbp", "max_steps=9"}));
  const std::string plan = ReadFile(folder_ / "part/plan.json");
  EXPECT_THAT(plan, HasSubstr("\"measured_for\": \"mgwfbp, 2 workers"));
  const TrainResult rest =
      Run(Config("part", 2, {"strategy.name=mgwfbp"}), {.resume = "auto", .weights = ""});
  EXPECT_EQ(rest.summary.weights_sha256, expected);
  EXPECT_EQ(ReadFile(folder_ / "part/plan.json"), plan);
  // It is measured again for another schedule or number of workers.
  EXPECT_THAT(ReadFile(folder_ / "part/plan.json"), HasSubstr("mgwfbp, 2 workers, ordered"));
  Run(Config("published", 2,
             {"strategy={name: mgwfbp, rule: published}", "max_steps=2",
              "plan=" + (folder_ / "part/plan.json").string()}));
  EXPECT_THAT(ReadFile(folder_ / "published/plan.json"),
              HasSubstr("mgwfbp by rule published, 2 workers, ordered"));
  // A given plan is used, even one bucket for all layers.
  const std::string given = folder_ / "plan.json";
  ExecutionPlan one = PlanFromJson(plan, "plan.json");
  one.buckets = {{0, one.buckets.back().end}};
  std::ofstream(given) << ToJson(one);
  const TrainResult follows = Run(Config("follows", 2, {"strategy.name=mgwfbp", "plan=" + given}));
  EXPECT_EQ(follows.summary.weights_sha256, expected);
  EXPECT_EQ(follows.summary.plan->buckets, 1);
}

TEST_F(TrainTest, MoreWorkersThanATailBatchHasSamples) {
  const TrainResult result = Run(Config("run", 20, {"max_steps=7"}));
  EXPECT_EQ(result.code, ExitCode::kDone);
  EXPECT_DOUBLE_EQ(result.summary.epochs, 1);
}

TEST_F(TrainTest, ClippingHoldsForAnyNumberOfWorkers) {
  const std::vector<std::string> clip = {"solver.clip_norm=0.5", "strategy.fusion_bytes=0"};
  Run(Config("one", 1, clip));
  Run(Config("two", 2, clip));
  Run(Config("free", 1));
  const std::vector<double> one = Losses("one"), two = Losses("two"), free = Losses("free");
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(two[i], one[i], 1e-5 * one[i]) << "step " << i + 1;
  EXPECT_GT(std::abs(free[10] - one[10]), 1e-3);
}

TEST_F(TrainTest, AResumedRunEndsWithTheSameBits) {
  const std::string whole = Run(Config("whole", 2)).summary.weights_sha256;
  Run(Config("part", 2, {"max_steps=9"}));  // in the middle of the second epoch
  const TrainResult rest = Run(Config("part", 2), {.resume = "auto", .weights = ""});
  EXPECT_EQ(rest.summary.weights_sha256, whole);
  EXPECT_EQ(Losses("part"), Losses("whole"));
}

TEST_F(TrainTest, ACorruptNewestCheckpointFallsBackToTheOneBefore) {
  const std::string whole = Run(Config("whole", 1)).summary.weights_sha256;
  Run(Config("part", 1, {"epochs=2"}));
  fs::resize_file(folder_ / "part" / "checkpoints" / "step-00000014.h5", 5000);
  ::testing::internal::CaptureStderr();
  const TrainResult rest = Run(Config("part", 1), {.resume = "auto", .weights = ""});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("step-00000014.h5"), HasSubstr("step-00000007.h5")));
  EXPECT_EQ(rest.summary.weights_sha256, whole);
}

TEST_F(TrainTest, ACheckpointOfAnotherModelIsNamed) {
  Run(Config("run", 1, {"max_steps=1"}));
  RunConfig other =
      Config("run", 1, {"model.name=" DTRAIN_SOURCE_DIR "/configs/models/lenet5_caffe.yaml"});
  EXPECT_THAT(MessageOf([&] { Run(other, {.resume = "auto", .weights = ""}); }),
              AllOf(HasSubstr("6: "), HasSubstr("of another model"),
                    HasSubstr("'conv1.bias' is [6] there and [20] here")));
}

// The test at the end uses the weights that were best on the validation split, on every rank.
TEST_F(TrainTest, TheBestWeightsAreKeptAndTested) {
  for (const std::string strategy : {"allreduce", "ps_ssp"}) {
    const std::vector<std::string> settings = {"checkpoint.keep_best=true", "data.validation=0.2",
                                               "epochs=4", "solver.lr=0.04",
                                               "strategy.name=" + strategy};
    const TrainResult result = Run(Config(strategy, 2, settings));
    ASSERT_TRUE(result.summary.best && result.summary.test);
    // The last weights are not tested.
    EXPECT_EQ(result.summary.test->step.value_or(*result.summary.step), result.summary.best->step);
    std::optional<std::pair<double, double>> best;  // of equal accuracies the lower loss
    int64_t step = 0;
    for (const auto& line : Lines(strategy, "evaluation")) {
      if (line["split"] != "validation") continue;
      const std::pair<double, double> value(line["accuracy"], -line["loss"].get<double>());
      if (best && value <= *best) continue;
      best = value;
      step = line["step"];
    }
    EXPECT_EQ(result.summary.best->step, step);
    const RunConfig config = Config(strategy, 1, settings);
    const fs::path file = FindWeights(folder_ / strategy);
    EXPECT_EQ(file.filename(), "best.h5");
    // Evaluated on one rank, the result is the same.
    const auto data = LoadData(config);
    const Graph graph = ReadModel(config, data->fields());
    const Checkpoint kept = LoadWeights(file, ModelLayoutOf(graph));
    EXPECT_EQ(kept.info.position.step, step);
    Net net(graph, Device{});
    LocalWorld::Run(1, [&](Transport& transport) {
      const auto mine =
          EvaluateBlocks(net, *data, Split::kTest, kept.weights.data(), kept.state.data(), 0, 1);
      const Evaluation again = JoinEvaluations(transport, *data, mine);
      EXPECT_NEAR(again.loss, result.summary.test->loss, 1e-6);
    });
  }
}

TEST_F(TrainTest, KeepingTheBestNeedsAValidationSplit) {
  EXPECT_THAT(MessageOf([&] { Config("run", 1, {"checkpoint.keep_best=true"}); }),
              AllOf(HasSubstr("checkpoint.keep_best=true"), HasSubstr("data.validation: 0.1")));
}

// Starts from the weights of another run, with another head and some frozen layers.
TEST_F(TrainTest, FrozenLayersStayWhateverTheStrategy) {
  Run(Config("before", 1, {"max_steps=3"}));
  const auto stored = [&](const std::string& run, const std::string& name) {
    const StoredWeights weights = ReadStoredWeights(FindCheckpoint((folder_ / run).string()));
    const auto& entries = weights.layout.parameters.entries;
    const auto entry = std::ranges::find(entries, name, &ArenaEntry::name);
    return std::vector<float>(weights.weights.begin() + entry->range.begin,
                              weights.weights.begin() + entry->range.end);
  };
  const std::vector<std::string> tuned = {"weights.from=" + (folder_ / "before").string(),
                                          "weights.except=[fc3]", "weights.freeze=[conv*]",
                                          "max_steps=4", "solver.weight_decay=0.1"};
  for (const std::string strategy : {"allreduce", "ps_ssp", "gssp"}) {
    std::vector<std::string> settings = tuned;
    settings.push_back("strategy.name=" + strategy);
    if (strategy == "gssp") settings.push_back("strategy.servers=1");
    Run(Config(strategy, 2, settings));
    for (const char* name : {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"}) {
      EXPECT_EQ(stored(strategy, name), stored("before", name)) << strategy << ", " << name;
    }
    EXPECT_NE(stored(strategy, "fc1.weight"), stored("before", "fc1.weight")) << strategy;
    EXPECT_NE(stored(strategy, "fc3.weight"), stored("before", "fc3.weight")) << strategy;
  }
}

TEST_F(TrainTest, APatternThatIsNoLayerIsAnError) {
  for (const char* key : {"freeze", "except"}) {
    EXPECT_THAT(MessageOf([&] { Run(Config("run", 1, {fmt::format("weights.{}=[cov1]", key)})); }),
                AllOf(HasSubstr(fmt::format("weights.{}: 'cov1' is no layer", key)),
                      HasSubstr("did you mean 'conv1'?")));
  }
  EXPECT_THAT(MessageOf([&] { Run(Config("run", 1, {"weights.freeze=['*']"})); }),
              HasSubstr("every layer is frozen"));
}

// Adam's state beside the weights is two vectors and the number of its steps.
TEST_F(TrainTest, AnAdamRunResumesToTheSameBits) {
  const std::string adam = "solver={name: adam, lr: 0.002}";
  const TrainResult whole = Run(Config("whole", 2, {adam}));
  Run(Config("part", 2, {adam, "max_steps=9"}));
  const TrainResult rest = Run(Config("part", 2, {adam}), {.resume = "auto", .weights = ""});
  EXPECT_EQ(rest.summary.weights_sha256, whole.summary.weights_sha256);
  EXPECT_GT(*whole.summary.test->accuracy, 0.3);
  const TrainResult one = Run(Config("one", 1, {adam}));
  const TrainResult server =
      Run(Config("server", 1, {adam, "strategy.name=ps_bsp", "strategy.placement=colocated"}));
  EXPECT_EQ(server.summary.weights_sha256, one.summary.weights_sha256);
}

// The names of a solver's vectors identify them in a checkpoint; RMSprop with momentum has a second one.
TEST_F(TrainTest, EverySolverResumesToTheSameBits) {
  std::vector<std::string> solvers = {"{name: rmsprop, lr: 0.001, momentum: 0.5}"};
  for (const std::string& name : SolverRegistry::Names()) {
    solvers.push_back(fmt::format("{{name: {}, lr: 0.002}}", name));
  }
  for (size_t s = 0; s < solvers.size(); ++s) {
    const std::string solver = "solver=" + solvers[s], part = fmt::format("part{}", s);
    const TrainResult whole = Run(Config(fmt::format("whole{}", s), 1, {solver, "max_steps=8"}));
    Run(Config(part, 1, {solver, "max_steps=5"}));
    const TrainResult rest =
        Run(Config(part, 1, {solver, "max_steps=8"}), {.resume = "auto", .weights = ""});
    EXPECT_EQ(rest.summary.weights_sha256, whole.summary.weights_sha256) << solver;
  }
}

TEST_F(TrainTest, MicroBatchesTrainAlike) {
  Run(Config("whole", 2, {"max_steps=10"}));
  Run(Config("parts", 2,
             {"max_steps=10", "accumulate=5"}));  // the last step has 8 samples a worker
  const std::vector<double> whole = Losses("whole"), parts = Losses("parts");
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i], whole[i], 1e-4) << i;
}

// Asynchronous updates come in another order in every run: 40 runs of 12 epochs ended between 47 and 78 %.
TEST_F(TrainTest, MicroBatchesTrainWithAPacedAsynchronousServer) {
  const TrainResult result =
      Run(Config("run", 2,
                 {"epochs=12", "accumulate=4", "strategy={name: ps_asp, placement: colocated}",
                  "cluster.step_seconds=0.002", "cluster.slowdown=[1, 2]"}));
  EXPECT_EQ(result.code, ExitCode::kDone);
  EXPECT_GT(*result.summary.test->accuracy, 0.3);
}

// However a batch is divided, its statistics are those of the whole batch.
TEST_F(TrainTest, SyncBatchNormTrainsAsOneWorkerDoes) {
  std::ofstream(folder_ / "normed.yaml") << R"(
name: normed
layers:
  - {name: conv, type: convolution, outputs: 8, kernel: 3, stride: 2, bias: false}
  - {name: norm, type: batch_norm}
  - {name: relu, type: relu}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
  - {name: accuracy, type: accuracy, input: [fc, label]}
  - {name: top5, type: accuracy, top_k: 5, input: [fc, label]}
)";
  const std::string model = "model.name=" + (folder_ / "normed.yaml").string();
  const auto run = [&](const std::string& output, int workers, std::vector<std::string> more) {
    more.insert(more.end(), {model, "epochs=4", "max_steps=20"});
    return Run(Config(output, workers, more));
  };
  const TrainResult one = run("one", 1, {});
  const TrainResult two = run("two", 2, {"batch_norm=sync"});
  run("three", 3,
      {"batch_norm=sync", "accumulate=2", "strategy={name: ps_bsp, placement: colocated}"});
  run("local", 2, {});
  const auto from_one = [&](const std::string& output) {
    double farthest = 0;
    for (size_t i = 0; i < 20; ++i) {
      farthest = std::max(farthest, std::abs(Losses(output)[i] - Losses("one")[i]));
    }
    return farthest;
  };
  EXPECT_FLOAT_EQ(Losses("two")[0], Losses("one")[0]) << "the same statistics to the bit";
  EXPECT_LT(from_one("two"), 1e-4);
  EXPECT_GT(from_one("local"), 1e-3);
  EXPECT_EQ(Losses("three").size(), 20u);
  EXPECT_NEAR(*two.summary.test->accuracy, *one.summary.test->accuracy, 0.02);
  ASSERT_EQ(two.summary.test->others.size(), 1u);
  EXPECT_EQ(two.summary.test->others[0].first, "top5");
  EXPECT_GT(two.summary.test->others[0].second, *two.summary.test->accuracy);

  const std::vector<std::string> sync = {model, "batch_norm=sync"};
  Run(Config("part", 2, {model, "batch_norm=sync", "max_steps=12"}));
  const TrainResult whole = Run(Config("whole", 2, sync));
  const TrainResult rest = Run(Config("part", 2, sync), {.resume = "auto", .weights = ""});
  EXPECT_EQ(rest.summary.weights_sha256, whole.summary.weights_sha256);
}

TEST_F(TrainTest, AFinishedRunResumesToNothing) {
  const Summary done = Run(Config("run", 1, {"epochs=2"})).summary;
  const TrainRequest resume{.resume = "auto", .weights = ""};
  EXPECT_TRUE(Run(Config("run", 1, {"epochs=1"}), resume).finished_before);
  // Makes the run one that was killed before it could write its summary.
  fs::remove(folder_ / "run/summary.json");
  const TrainResult again = Run(Config("run", 1, {"epochs=1"}), resume);
  EXPECT_FALSE(again.finished_before);
  EXPECT_EQ(again.code, ExitCode::kDone);
  EXPECT_EQ(again.summary.weights_sha256, done.weights_sha256);
  EXPECT_TRUE(again.summary.test.has_value());
  EXPECT_EQ(again.summary.train_loss, done.train_loss) << "of the run's last step";
}

TEST_F(TrainTest, ResumingWithAnotherBatchInTheMiddleOfAnEpochIsRefused) {
  Run(Config("run", 1, {"max_steps=9"}));
  EXPECT_THAT(
      MessageOf([&] { Run(Config("run", 1, {"batch=50"}), {.resume = "auto", .weights = ""}); }),
      AllOf(HasSubstr("6: "), HasSubstr("step-00000009.h5 lies in the middle of epoch 2"),
            HasSubstr("go on with batch 64")));
}

TEST_F(TrainTest, ResumingWithAnotherConfigIsSaid) {
  Run(Config("run", 1, {"max_steps=2"}));
  ::testing::internal::CaptureStderr();
  Run(Config("run", 1, {"max_steps=4", "seed=7"}), {.resume = "auto", .weights = ""});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("(checkpoint -> now):\n  seed: 1 -> 7\n  max_steps: 2 -> 4\n"));
}

TEST_F(TrainTest, AModelWithoutParametersIsRefused) {
  std::ofstream(folder_ / "m.yaml")
      << "name: none\nlayers:\n  - {name: flat, type: flatten}\n"
         "  - {name: loss, type: softmax_cross_entropy, input: [flat, label]}\n";
  EXPECT_THAT(
      MessageOf([&] { Run(Config("run", 2, {"model.name=" + (folder_ / "m.yaml").string()})); }),
      HasSubstr("no layer of the model has parameters"));
}

TEST_F(TrainTest, AFreshRunDoesNotBuryCheckpoints) {
  Run(Config("run", 1, {"max_steps=1"}));
  EXPECT_THAT(MessageOf([&] { Run(Config("run", 1)); }),
              AllOf(HasSubstr("2: "), HasSubstr("--resume auto")));
}

TEST_F(TrainTest, StartsFromGivenWeights) {
  const TrainResult first = Run(Config("first", 1));
  Run(Config("second", 1, {"max_steps=1"}),
      {.resume = "none", .weights = (folder_ / "first").string()});
  EXPECT_LT(Losses("second")[0], Losses("first")[0]);
}

TEST_F(TrainTest, AStopSignalEndsAllRanksAtOneStepReadyToResume) {
  const std::string whole = Run(Config("whole", 2)).summary.weights_sha256;
  TrainResult stopped;
  {
    const StopSignals signals;
    SendStopSignal(SIGUSR1);  // pending from the start: ends the run after the first step
    stopped = Run(Config("run", 2));
  }
  EXPECT_EQ(stopped.code, ExitCode::kStopped);
  EXPECT_EQ(stopped.summary.status, "stopped");
  EXPECT_EQ(stopped.summary.exit_code, 75);
  EXPECT_TRUE(fs::exists(folder_ / "run" / "checkpoints" / "step-00000001.h5"));
  const TrainResult rest = Run(Config("run", 2), {.resume = "auto", .weights = ""});
  EXPECT_EQ(rest.code, ExitCode::kDone);
  EXPECT_EQ(rest.summary.weights_sha256, whole);
}

// All ranks end together, the lowest one prints the reason, and there is no run to resume yet.
TEST_F(TrainTest, AStopSignalWhileDataAreLoadedEndsTheRun) {
  const std::vector<float> values(64);
  Hdf5Builder file(0);
  file.WriteFloats("data", {64, 1, 28, 28}, std::vector<float>(64 * 28 * 28).data());
  file.WriteFloats("label", {64}, values.data());
  std::ofstream(folder_ / "a.h5", std::ios::binary) << file.Finish().Content();
  const RunConfig config = Config("run", 2,
                                  {"data.name=hdf5", "data.train=" + (folder_ / "a.h5").string(),
                                   "data.class_names=[a,b,c,d,e,f,g,h,i,j]", "batch=16"});
  const StopSignals signals;
  SendStopSignal(SIGTERM);
  try {
    Run(config);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStopped);
    EXPECT_THAT(error.what(), HasSubstr("stopped by SIGTERM while reading"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainTest, InfinityEndsTheRunNamingStepAndLayer) {
  ::testing::internal::CaptureStderr();
  const TrainResult result = Run(Config("run", 2, {"solver.lr=1e20"}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("NaN or infinity in the gradient of "), HasSubstr("step "),
                    HasSubstr("a lower solver.lr")));
  EXPECT_EQ(result.code, ExitCode::kDiverged);
  EXPECT_EQ(result.summary.status, "failed");
  const auto error = nlohmann::json::parse(ReadFile(folder_ / "run" / "errors" / "rank-0.json"));
  EXPECT_EQ(error["exit_code"], 5);
}

TEST_F(TrainTest, AnOutputFolderThatCannotBeWrittenIsNamed) {
  RunConfig config = Config("run", 2);
  config.output = "/dev/null/run";
  EXPECT_THAT(MessageOf([&] { Run(config); }), AllOf(HasSubstr("6: "), HasSubstr("/dev/null/run")));
}

TEST_F(TrainTest, RanksThatDisagreeStopBeforeTheFirstStepWithADiff) {
  const RunConfig a = Config("run", 2);
  const RunConfig b = Config("run", 2, {"solver.momentum=0.8"});
  const std::string message = MessageOf([&] {
    LocalWorld::Run(
        2, [&](Transport& transport) { Train(transport.rank() == 0 ? a : b, {}, transport); });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("2: the ranks do not agree"),
                             HasSubstr("rank 1 has another config than rank 0"),
                             HasSubstr("-   momentum: 0.9"), HasSubstr("+   momentum: 0.8")));
}

TEST_F(TrainTest, APlanFromAnotherMachineIsNotFollowedSilently) {
  Run(Config("run", 1, {"max_steps=2"}));
  ::testing::internal::CaptureStderr();
  Run(Config("run", 1, {"max_steps=4", "threads=2"}), {.resume = "auto", .weights = ""});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("not bit-equal"), HasSubstr("threads 1 -> 2")));
}

}  // namespace
}  // namespace dtrain
