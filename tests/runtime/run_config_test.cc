#include "framework/setup/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/setup/locate_model.h"
#include "framework/setup/run_setup.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRuns = DTRAIN_SOURCE_DIR "/configs/runs/";

constexpr char kSmall[] = "model: lenet5\ndata: digits\n";

RunConfig Read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto document = config::Document::FromText(text, kRuns + "small.yaml", overrides);
  return ReadRunConfig(document);
}

std::string ErrorOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return WhatOf<ConfigError>([&] { Read(text, overrides); });
}

// The strategy decides whether a run continues without a dead worker.
TEST(RunConfig, DeathsThatWouldStopTheRunAreRefused) {
  const auto error = [](const std::string& strategy, const std::string& deaths) {
    return ErrorOf(std::string(kSmall) + "strategy: {" + strategy +
                   "}\ncluster: {workers: 4, per_node: 2, deaths: [" + deaths + "]}\n");
  };
  for (const char* name : {"allreduce", "ps_bsp", "ps_ssp", "ps_dssp", "gssp"}) {
    EXPECT_THAT(error(std::string("name: ") + name, "{worker: 1, at_step: 5}"),
                AllOf(HasSubstr("small.yaml:4:36: a death would stop strategy '" +
                                std::string(name) + "': it waits for every worker"),
                      HasSubstr("easgd, inhad, ps_asp go on without a dead worker")));
  }
  EXPECT_THAT(error("name: inhad, pull_timeout: 0", "{node: 1, at_seconds: 5}"),
              HasSubstr("since strategy.pull_timeout is 0"));
  EXPECT_THAT(error("name: inhad", "{worker: 4, at_step: 5}"), HasSubstr("there is no worker 4"));
  EXPECT_THAT(error("name: inhad", "{node: 3, at_seconds: 5}"), HasSubstr("there is no node 3"));
  EXPECT_THAT(error("name: inhad, placement: colocated",
                    "{worker: 1, at_step: 5}, {node: 0, at_seconds: 1}"),
              HasSubstr("node 0 cannot die: rank 0 is worker 0, server 0, node 0"));
  EXPECT_THAT(error("name: inhad", "{node: 0, at_seconds: 5}, {worker: 2, at_step: 5}"),
              HasSubstr("no worker is left to go on"));
  Read(std::string(kSmall) +
       "strategy: ps_asp\ncluster: {workers: 4, deaths: [{worker: 0, at_step: 5}]}\n");
  // The dedicated server has a node of its own, though node 1 has room for it.
  Read(std::string(kSmall) +
       "strategy: {name: ps_asp, placement: dedicated}\n"
       "cluster: {workers: 3, per_node: 2, deaths: [{node: 1, at_seconds: 5}]}\n");
}

TEST(RunConfig, ModelAndDataAreEnough) {
  const RunConfig run = Read(kSmall);
  EXPECT_EQ(run.model.name, "lenet5");
  EXPECT_TRUE(fs::equivalent(run.model.file, DTRAIN_SOURCE_DIR "/configs/models/lenet5.yaml"));
  EXPECT_EQ(run.data.name, "digits");
  EXPECT_EQ(run.data.root, "");
  ASSERT_NE(run.data.source, nullptr);
  EXPECT_EQ(run.data.source->classes(), 10);
  EXPECT_EQ(run.batch, 64);
  EXPECT_EQ(run.epochs, 10);
  EXPECT_EQ(run.max_steps, 0);
  EXPECT_EQ(run.solver.name, "sgd");
  ASSERT_NE(run.solver.solver, nullptr);
  EXPECT_EQ(run.strategy_name, "allreduce");
  ASSERT_NE(run.strategy, nullptr);
  EXPECT_EQ(run.collective, "ordered");
  EXPECT_FALSE(run.overlap_buckets);
  EXPECT_EQ(run.workers, 1);
  EXPECT_EQ(run.device, "auto");
  EXPECT_EQ(run.precision, "fp32");
  EXPECT_EQ(run.threads, 0);
  EXPECT_EQ(run.seed, 1u);
  EXPECT_EQ(run.evaluate.every_epochs, 1);
  EXPECT_EQ(run.evaluate.every_steps, 0);
  EXPECT_FALSE(run.stop.any());
  EXPECT_EQ(run.checkpoint.every_epochs, 1);
  EXPECT_EQ(run.checkpoint.every_steps, 0);
  EXPECT_EQ(run.checkpoint.keep, 2);
  EXPECT_EQ(run.stall_seconds, 0);
  EXPECT_EQ(run.plan, "auto");
}

TEST(RunConfig, EveryKeyIsRead) {
  const RunConfig run = Read(
      "model: {name: lenet5_caffe}\n"
      "data: {name: digits, root: /data, seed: 3, train_samples: 500}\n"
      "batch: 32\nepochs: 3\nmax_steps: 7\n"
      "solver: {name: sgd, lr: 0.5, clip_norm: 2, warmup_epochs: 1, lr_scaling: linear}\n"
      "strategy: {name: allreduce, fusion_bytes: 1000}\n"
      "collective: ring\noverlap_buckets: true\n"
      "cluster: {workers: 8, per_node: 2, slowdown: [1, 4], step_seconds: 0.05}\n"
      "device: cpu\nprecision: fp32\nthreads: 2\nseed: 9\nwindow: false\n"
      "evaluate: {every_epochs: 2, every_steps: 30}\n"
      "stop: {target: 0.98, patience: 4}\n"
      "checkpoint: {every_epochs: 0, every_steps: 50, keep: 5}\n"
      "log_first_steps: 1\nlog_every_steps: 10\nstall_seconds: 12.5\noutput: /tmp/out\n");
  EXPECT_EQ(run.model.name, "lenet5_caffe");
  EXPECT_EQ(run.data.root, "/data");
  EXPECT_EQ(run.data.source->size(Split::kTrain), 500);
  EXPECT_EQ(run.batch, 32);
  EXPECT_EQ(run.epochs, 3);
  EXPECT_EQ(run.max_steps, 7);
  EXPECT_EQ(run.solver.lr, 0.5);
  EXPECT_EQ(run.solver.clip_norm, 2);
  EXPECT_EQ(run.solver.warmup_epochs, 1);
  EXPECT_EQ(run.solver.lr_scaling, LrScaling::kLinear);
  EXPECT_EQ(run.strategy->Buckets({{{0, 100}, {100, 200}, {200, 500}}}).size(), 2u);
  EXPECT_EQ(run.collective, "ring");
  EXPECT_TRUE(run.overlap_buckets);
  EXPECT_EQ(run.workers, 8);
  EXPECT_EQ(run.cluster.per_node(), 2);
  EXPECT_FALSE(run.window);
  EXPECT_EQ(run.cluster.step_seconds, 0.05);
  EXPECT_EQ(run.cluster.SlowdownOf(8).back(), 4);
  EXPECT_EQ(run.device, "cpu");
  EXPECT_EQ(run.threads, 2);
  EXPECT_EQ(run.seed, 9u);
  EXPECT_EQ(run.evaluate.every_epochs, 2);
  EXPECT_EQ(run.evaluate.every_steps, 30);
  EXPECT_EQ(run.stop.target, 0.98);
  EXPECT_EQ(run.stop.patience, 4);
  EXPECT_EQ(run.checkpoint.every_epochs, 0);
  EXPECT_EQ(run.checkpoint.every_steps, 50);
  EXPECT_EQ(run.checkpoint.keep, 5);
  EXPECT_EQ(run.log_first_steps, 1);
  EXPECT_EQ(run.log_every_steps, 10);
  EXPECT_EQ(run.stall_seconds, 12.5);
  EXPECT_EQ(run.output, "/tmp/out");
}

TEST(RunConfig, TheEffectiveConfigRunsTheSame) {
  const RunConfig first = Read(kSmall, {"solver.lr=0.3", "cluster.workers=4", "seed=5"});
  EXPECT_THAT(first.effective_yaml, HasSubstr("\noutput: \"runs/{config}-{time}\"\n"));
  const RunConfig again = Read(first.effective_yaml);
  EXPECT_EQ(again.effective_yaml, first.effective_yaml);
  EXPECT_EQ(again.config_sha256, first.config_sha256);
  EXPECT_EQ(again.solver.lr, 0.3);
  EXPECT_EQ(again.workers, 4);
}

TEST(RunConfig, TheHashCoversEverythingButTheOutput) {
  const std::string hash = Read(kSmall).config_sha256;
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(Read(kSmall, {"output=elsewhere"}).config_sha256, hash);
  EXPECT_NE(Read(kSmall, {"seed=2"}).config_sha256, hash);
  EXPECT_NE(Read(kSmall, {"strategy.fusion_bytes=1"}).config_sha256, hash);
}

TEST(RunConfig, TenErrorsAtOnce) {
  const std::string error = ErrorOf(
      "model: lenet55\n"
      "data: {name: minst, root: 5}\n"
      "bach: 64\n"
      "epochs: 010\n"
      "epochs: 3\n"
      "solver: {name: sgdd, lr: -1}\n"
      "strategy: {name: allreduce, fusion_byte: 3}\n"
      "collective: rink\n"
      "precision: bf61\n"
      "seed: .nan\n"
      "checkpoint: {keep: 0}\n");
  for (const char* line : {
           "small.yaml:1:8: model.name: there is no model 'lenet55'\n    did you mean 'lenet5'?",
           "small.yaml:2:14: data.name has no choice 'minst'\n    did you mean 'mnist'?",
           "small.yaml:2:27: data.root must be a string, found '5'",
           "small.yaml:3:1: unknown key 'bach'\n    did you mean 'batch'?",
           "small.yaml:4:9: epochs must not begin with 0, found '010'\n    write 10",
           "small.yaml:5:1: repeated key 'epochs'",
           "small.yaml:6:16: solver.name has no choice 'sgdd'\n    did you mean 'sgd'?",
           "small.yaml:6:26: solver.lr must be > 0 and <= 3e+38, found -1",
           "small.yaml:7:29: unknown key 'fusion_byte' in strategy 'allreduce'\n"
           "    did you mean 'fusion_bytes'?  allowed: fusion_bytes, name\n",
           "small.yaml:8:13: collective has no choice 'rink'\n    did you mean 'ring'?",
           "small.yaml:9:12: precision has no choice 'bf61'\n    did you mean 'bf16'?  allowed: "
           "fp32, tf32, bf16, fp16\n",
           "small.yaml:10:7: seed must be an integer, found '.nan'",
           "small.yaml:11:20: checkpoint.keep must be >= 1, found 0",
           "13 errors; nothing was started",
       }) {
    EXPECT_THAT(error, HasSubstr(line));
  }
}

TEST(RunConfig, ANameOfAnotherKeySaysWhichKey) {
  EXPECT_THAT(ErrorOf(std::string(kSmall) + "strategy: ring\n"),
              AllOf(HasSubstr("strategy.name has no choice 'ring'"),
                    HasSubstr("it is a choice of another key: collective: ring; allowed here: ")));
  EXPECT_THAT(ErrorOf(std::string(kSmall) + "collective: ps_ssp\n"),
              HasSubstr("it is a choice of another key: strategy: ps_ssp; allowed here: "));
}

TEST(RunConfig, AKeyOfOtherStrategiesSaysOfWhich) {
  EXPECT_THAT(ErrorOf(kSmall, {"strategy.name=ps_asp", "strategy.momentum_of_nobody=1"}),
              Not(HasSubstr("have it")));
  EXPECT_THAT(ErrorOf(kSmall, {"strategy.staleness=2"}),
              AllOf(HasSubstr("unknown key 'staleness' in strategy 'allreduce'"),
                    HasSubstr("    only "), HasSubstr("ps_ssp have it; allowed: fusion_bytes")));
}

TEST(RunConfig, AnEmptyNameOfTheRunFolderIsRefused) {
  EXPECT_THAT(ErrorOf(kSmall, {"output="}),
              HasSubstr("--set output=: output: the name of the run folder is empty"));
}

TEST(RunConfig, WhatIsNeededIsNamed) {
  EXPECT_THAT(
      ErrorOf("batch: 1\n"),
      AllOf(HasSubstr("small.yaml:1:1: the key model.name is missing\n"
                      "    name of a model in configs/models, or the path of a model file\n"),
            HasSubstr("small.yaml:1:1: the key data.name is missing\n")));
}

TEST(RunConfig, EveryWorkerNeedsASample) {
  const std::string text = std::string("cluster: {workers: 8}\n") + kSmall + "batch: 4\n";
  EXPECT_THAT(
      ErrorOf(text),
      HasSubstr("small.yaml:4:1: batch 4 is smaller than the number of workers (8, line 1)\n"
                "    the workers share the batch: take a larger one, or fewer workers\n"
                "1 error; nothing was started"));
  EXPECT_THAT(ErrorOf(kSmall, {"cluster.workers=65"}),
              HasSubstr("small.yaml:1:1: batch 64 is smaller than the number of workers (65, --set "
                        "cluster.workers=65)\n"));
  EXPECT_EQ(ErrorOf(kSmall, {"cluster.workers=64"}), "no error");
}

TEST(RunConfig, EveryPartOfAShareNeedsASample) {
  EXPECT_EQ(Read(kSmall, {"batch=64", "cluster.workers=4", "accumulate=16"}).accumulate, 16);
  EXPECT_THAT(ErrorOf(kSmall, {"batch=64", "cluster.workers=4", "accumulate=17"}),
              HasSubstr("accumulate 17 cuts a worker's share of 16 samples into parts without a "
                        "sample (batch 64, workers 4)"));
}

TEST(RunConfig, SyncBatchNormNeedsAStrategyInWhichAllStepTogether) {
  EXPECT_FALSE(Read(kSmall).sync_batch_norm);
  EXPECT_TRUE(Read(kSmall, {"batch_norm=sync", "strategy.name=ps_bsp"}).sync_batch_norm);
  EXPECT_THAT(ErrorOf(kSmall, {"batch_norm=sync", "strategy.name=ps_ssp"}),
              HasSubstr("batch_norm 'sync' needs workers that take their steps together; in "
                        "'ps_ssp' each takes its own"));
}

TEST(RunConfig, SlowdownIsForTheWorkers) {
  const std::string slow = std::string(kSmall) + "cluster:\n  slowdown: [1, 1, 4]\n";
  EXPECT_THAT(ErrorOf(slow + "  workers: 4\n"),
              HasSubstr("small.yaml:4:3: 3 slowdown factors cannot be shared out to 4 workers "
                        "(line 5)\n"));
  EXPECT_EQ(ErrorOf(slow), "no error");  // a launcher may give a fitting number
  EXPECT_THAT(ErrorOf(slow, {"cluster.workers=2"}),
              HasSubstr("cannot be shared out to 2 workers (--set cluster.workers=2)\n"));
}

TEST(RunConfig, ABatchNeedsThatManySamples) {
  EXPECT_THAT(ErrorOf(kSmall, {"data.train_samples=63"}),
              HasSubstr("batch 64 is more than the 63 training samples of digits "
                        "(data.train_samples, --set data.train_samples=63)\n"
                        "    take a batch of 63 or less, or more data\n"));
  EXPECT_EQ(ErrorOf(kSmall, {"data.train_samples=64"}), "no error");
  EXPECT_THAT(ErrorOf("model: lenet5\ndata:\n  name: digits\n  limit: 6\nbatch: 32\n"),
              HasSubstr("small.yaml:5:1: batch 32 is more than the 6 training samples of digits "
                        "(data.limit, line 4)\n"));
}

TEST(RunConfig, WarmUpEndsWithinTheRun) {
  EXPECT_THAT(ErrorOf(std::string(kSmall) + "epochs: 3\nsolver: {warmup_epochs: 4.5}\n"),
              HasSubstr("small.yaml:4:10: warm-up of 4.5 epochs is longer than the run "
                        "(3 epochs, line 3)\n"));
}

TEST(RunConfig, ARunThatMayEndEarlyIsEvaluatedBefore) {
  EXPECT_THAT(ErrorOf(kSmall, {"stop.target=-0.5", "stop.patience=-1", "evaluate.every_steps=-1"}),
              AllOf(HasSubstr("stop.target must be >= 0"), HasSubstr("stop.patience must be >= 0"),
                    HasSubstr("evaluate.every_steps must be >= 0")));
  EXPECT_THAT(ErrorOf(kSmall, {"stop.target=0.9", "evaluate.every_epochs=0"}),
              AllOf(HasSubstr("--set stop.target=0.9: nothing is evaluated before the end"),
                    HasSubstr("set evaluate.every_epochs or evaluate.every_steps")));
  EXPECT_THAT(ErrorOf(kSmall, {"stop.patience=2", "evaluate.every_epochs=0"}),
              HasSubstr("--set stop.patience=2: nothing is evaluated"));
  EXPECT_NO_THROW(
      Read(kSmall, {"stop.target=0.9", "evaluate.every_epochs=0", "evaluate.every_steps=50"}));
}

TEST(RunConfig, ATargetIsOfWhatTheRunIsEvaluatedBy) {
  const auto error = [](const std::string& text, const std::vector<std::string>& overrides) {
    const RunConfig run = Read(text, overrides);
    return WhatOf<ConfigError>([&] { ReadModel(run); });
  };
  EXPECT_THAT(error(kSmall, {"stop.target=98"}),
              HasSubstr("stop.target is 98; it is an accuracy here, above 0 and at most 1"));
  EXPECT_NO_THROW(ReadModel(Read(kSmall, {"stop.target=1"})));
  const std::string text = "model: {name: seq2seq_attention}\ndata: {name: multi30k}\n";
  EXPECT_THAT(error(text, {"stop.target=0.5"}),
              HasSubstr("stop.target is 0.5; it is a perplexity here, which is at least 1"));
  EXPECT_NO_THROW(ReadModel(Read(text, {"stop.target=30"})));
}

TEST(RunConfig, ThePlanFileMustExist) {
  EXPECT_THAT(ErrorOf(kSmall, {"plan=/no/plan.json"}),
              HasSubstr("--set plan=/no/plan.json: there is no plan file '/no/plan.json'\n"
                        "    auto, measure, or the path of a file\n"));
}

TEST(RunConfig, NoDocumentGivesTheHelpTable) {
  auto document = config::Document::Empty();
  EXPECT_EQ(ReadRunConfig(document).batch, 64);
  for (const config::KeyHelp& key : document.Keys()) {
    EXPECT_FALSE(key.help.empty()) << key.path << " has no help";
  }
}

TEST(RunConfig, OutputNamesConfigAndTime) {
  EXPECT_EQ(ExpandOutput("runs/{config}-{time}", "configs/runs/a.b.yaml", "20250131-235959"),
            "runs/a.b-20250131-235959");
  EXPECT_EQ(ExpandOutput("plain", "x.yaml", ""), "plain");
  EXPECT_EQ(ExpandOutput("open{config", "x.yaml", ""), "open{config");
  EXPECT_THAT(Read(kSmall).output, ::testing::MatchesRegex("runs/small-[0-9]{8}-[0-9]{6}"));
  EXPECT_THAT(ErrorOf(kSmall, {"output=runs/{seed}"}),
              HasSubstr("--set output=runs/{seed}: output has no placeholder {seed}\n"
                        "    allowed: {config}, {time}\n"));
}

TEST(RunConfig, EveryConfigThatIsShippedLoads) {
  int loaded = 0;
  for (const auto& entry : fs::directory_iterator(kRuns)) {
    auto document = config::Document::FromFile(entry.path());
    const RunConfig run = ReadRunConfig(document);
    EXPECT_THAT(ReadModel(run).warnings(), testing::IsEmpty()) << entry.path();
    ++loaded;
  }
  EXPECT_GE(loaded, 2);
}

class LocateModelTest : public ::testing::Test {
 protected:
  LocateModelTest() {
    std::string pattern = (fs::temp_directory_path() / "dtrain-models-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    fs::create_directories(folder_ / "runs");
    fs::create_directories(folder_ / "models");
    std::ofstream(folder_ / "models" / "tiny.yaml") << "name: tiny\n";
    std::ofstream(folder_ / "runs" / "own.yaml") << "name: own\n";
    config_ = (folder_ / "runs" / "run.yaml").string();
  }
  ~LocateModelTest() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::string config_;
};

TEST_F(LocateModelTest, ByNameBesideTheConfigsFolder) {
  EXPECT_TRUE(fs::equivalent(LocateModel("tiny", config_), folder_ / "models" / "tiny.yaml"));
  EXPECT_EQ(LocateModel("own", config_), "");
  EXPECT_EQ(NamedModels(config_).count("tiny"), 1u);
}

TEST_F(LocateModelTest, ByPath) {
  const std::string path = (folder_ / "models" / "tiny.yaml").string();
  EXPECT_EQ(LocateModel(path, config_), path);
  EXPECT_EQ(LocateModel("own.yaml", config_), folder_ / "runs" / "own.yaml");
  EXPECT_TRUE(fs::exists(LocateModel("../models/tiny.yaml", config_)));
  EXPECT_EQ(LocateModel("no/such.yaml", config_), "");
  EXPECT_EQ(LocateModel((folder_ / "models").string(), config_), "");
}

// Looks beside the config, in the current folder, and above the program; in each folder once.
TEST_F(LocateModelTest, FoldersInTheirOrder) {
  const fs::path before = fs::current_path();
  const fs::path own = folder_ / "work" / "configs" / "models";
  fs::create_directories(own);
  fs::current_path(folder_ / "work");
  const std::vector<fs::path> folders = ModelFolders(config_);
  const std::vector<fs::path> same = ModelFolders("configs/runs/run.yaml");
  fs::create_directories("configs/runs");
  const std::vector<fs::path> once = ModelFolders("configs/runs/run.yaml");
  fs::current_path(before);
  // Wherever the tests were built, these are three folders above their program.
  std::vector<fs::path> above;
  fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (int i = 0; i < 3; ++i) {
    folder = folder.parent_path();
    if (fs::is_directory(folder / "configs" / "models"))
      above.push_back(folder / "configs" / "models");
  }
  ASSERT_EQ(folders.size(), 2 + above.size());
  EXPECT_EQ(folders[0], (folder_ / "models").lexically_normal());
  EXPECT_EQ(folders[1], "configs/models");
  for (size_t i = 0; i < above.size(); ++i) EXPECT_EQ(folders[2 + i], above[i]);
  EXPECT_EQ(same.size(), folders.size() - 1) << "there is no folder beside the config";
  EXPECT_EQ(once.size(), folders.size() - 1) << "they are the same folder";
}

TEST(RunConfig, AnUpdateOfLessThanOneGradientIsAWarningWithItsLine) {
  const std::string text = std::string(kSmall) + "strategy: {name: inhad, n: 5}\n";
  EXPECT_THAT(Read(text, {"cluster.workers=3"}).warnings,
              testing::ElementsAre(AllOf(HasSubstr("small.yaml:3:"),
                                         HasSubstr("n is 5, but there are 3 workers: it counts "
                                                   "as 3"))));
  EXPECT_THAT(Read(text, {"cluster.workers=5"}).warnings, testing::IsEmpty());
}

}  // namespace
}  // namespace dtrain
