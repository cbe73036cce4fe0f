// Tests cluster.compress_costs from end to end: the file that `bench topk --costs` writes, what `simulate` and `plan` make
// of one, where it is recorded, and the errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/compress_cost.h"
#include "framework/core/execution_plan.h"
#include "framework/core/file.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/cli/planned_four.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kQuickstartRun[] = DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml";

// A selection takes `fixed` seconds and 1 ns an entry, with any density.
CompressCosts CostsWith(double fixed, const std::string& device = "cpu",
                        const std::vector<std::string>& compressors = {"topk"}) {
  CompressCosts costs{.device = device, .machine = "none", .threads = 1, .source = "a test"};
  for (const std::string& name : compressors) {
    costs.costs.push_back({name,
                           {{.density = 0.01, .entries = 1000, .seconds = fixed + 1e-6},
                            {.density = 0.01, .entries = 1'000'000, .seconds = fixed + 1e-3}}});
  }
  return costs;
}

class CompressCostsCommand : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const CompressCosts& costs) const {
    WriteFileDurably(folder_.path() / name, ToJson(costs));
    return (folder_.path() / name).string();
  }
  // Runs `dtrain simulate` on the sizes of Plan's model.
  CommandOutcome Simulate(const std::vector<std::string>& more) const {
    Plan(folder_, {"--collectives", "ring"});  // writes the profile
    std::vector<std::string> words = {
        "simulate",  "--json",      "--profile", (folder_.path() / "profile.json").string(),
        "--workers", "4",           "--set",     "batch=32",
        "--set",     "max_steps=10"};
    words.insert(words.end(), more.begin(), more.end());
    return RunCommand(words);
  }
  double SecondsOf(const std::vector<std::string>& more) const {
    const CommandOutcome outcome = Simulate(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["seconds"];
  }
  // A simulation that computes gradients, with checkpoints.
  static std::vector<std::string> Numeric(const fs::path& output, const std::string& resume,
                                          const std::vector<std::string>& settings) {
    std::vector<std::string> words = {"simulate",      "--config", kQuickstartRun, "--output",
                                      output.string(), "--resume", resume,         "--json"};
    std::vector<std::string> all = {
        "data.train_samples=320",  "data.test_samples=40", "epochs=2",
        "strategy={name: ps_asp}", "cluster.workers=2",    "cluster.step_seconds=0.01",
        "compress.name=topk"};
    all.insert(all.end(), settings.begin(), settings.end());
    for (const std::string& it : all) words.insert(words.end(), {"--set", it});
    return words;
  }
  const TempFolder folder_;
};

TEST_F(CompressCostsCommand, BenchWritesAFileThatASimulationTakes) {
  const std::string file = (folder_.path() / "here.json").string();
  const CommandOutcome bench = RunCommand({"bench",
                                           "topk",
                                           "--costs",
                                           file,
                                           "--seconds",
                                           "0",
                                           "--sizes",
                                           "1000,20000",
                                           "--density",
                                           "0.01,0.1",
                                           "--coder-workers",
                                           "2,4",
                                           "--compressors",
                                           "topk",
                                           "gaussiank:loop=published",
                                           "dgc:sample_ratio=0.1",
                                           "fp16",
                                           "ef_signsgd",
                                           "powersgd:rank=2",
                                           "powersgd:rank=4"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_EQ(LinesOf(bench.out).size(), 3u * 4 + 2 + 3 * 4) << "a line for each sample";
  const CompressCosts costs = ReadCompressCosts(file);
  EXPECT_EQ(costs.device, "cpu");
  EXPECT_NE(costs.machine, "");
  EXPECT_EQ(costs.Names(),
            "topk, gaussiank:loop=published, dgc:sample_ratio=0.1, fp16, ef_signsgd, "
            "powersgd:rank=2, powersgd");
  for (const CompressCost& cost : costs.costs) {
    SCOPED_TRACE(cost.compressor);
    EXPECT_EQ(cost.samples.size(), cost.compressor == "fp16" ? 2u : 4u);
    for (const CompressCost::Sample& it : cost.samples) {
      EXPECT_GT(it.seconds, 0);
      EXPECT_EQ(it.decode_seconds > 0, it.workers > 0);
    }
  }
  EXPECT_EQ(costs.costs[0].samples[1].entries, 20'000);
  EXPECT_EQ(costs.costs[0].samples[2].density, 0.1);
  SecondsOf({"--set", "cluster.compress_costs=" + file, "--set",
             "compress={name: dgc, sample_ratio: 0.1}"});
}

TEST_F(CompressCostsCommand, ABenchForAllRunsMeasuresEveryCompressor) {
  const std::string file = (folder_.path() / "here.json").string();
  const CommandOutcome bench = RunCommand(
      {"bench", "topk", "--costs", file, "--seconds", "0", "--sizes", "1000", "--density", "0.01"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  const CompressCosts costs = ReadCompressCosts(file);
  for (const std::string& name : CompressorRegistry::Names()) {
    EXPECT_NE(costs.Find(name), nullptr) << name;
  }
  EXPECT_NE(costs.Find("gaussiank:loop=published"), nullptr);
}

// 4 million values in one bucket, in ten steps: 4 ms each besides the fixed part.
TEST_F(CompressCostsCommand, ASimulatedRunTakesLongerByTheMeasuredTimes) {
  const auto with = [&](double fixed, const std::string& compressor) {
    return SecondsOf({"--set", "compress.name=" + compressor, "--set",
                      "cluster.compress_costs=" + Write("costs.json", CostsWith(fixed))});
  };
  EXPECT_NEAR(with(0.05, "topk") - with(0.01, "topk"), 10 * 0.04, 1e-8);
  CompressCosts twice = CostsWith(0.01);
  for (CompressCost::Sample& sample : twice.costs[0].samples) sample.seconds *= 2;
  const double seconds = SecondsOf({"--set", "compress.name=topk", "--set",
                                    "cluster.compress_costs=" + Write("twice.json", twice)});
  EXPECT_NEAR(seconds - with(0.01, "topk"), 10 * 0.014, 1e-8);
  EXPECT_EQ(with(0.05, "none"), SecondsOf({}));
}

TEST_F(CompressCostsCommand, APlanReckonsWithThem) {
  const auto seconds = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--json",        "--schedules",   "single",
                                      "--compressors", "topk",          "--exchanges",
                                      "gather",        "--collectives", "ring"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<double> all;
    for (const auto& row : Rows(Plan(folder_, words))) all.push_back(row["step_seconds"]);
    return all;
  };
  const auto without = seconds({});
  const auto with =
      seconds({"--set", "cluster.compress_costs=" + Write("costs.json", CostsWith(0.05))});
  ASSERT_EQ(with.size(), 2u);
  EXPECT_EQ(with[0], without[0]) << "dense";
  EXPECT_NEAR(with[1] - without[1], 0.054 - 2 * 16e6 / 8e9, 1e-8);
}

// Each sum begins with 50 ms of selection, so that merged buckets pay.
TEST_F(CompressCostsCommand, AScheduleByTimeMergesMoreWhereASelectionHasAFixedPart) {
  const auto buckets = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--output", (folder_.path() / "run").string(),
                                      "--set",    "strategy.name=mgwfbp",
                                      "--set",    "compress.name=topk",
                                      "--set",    "cluster.memory_gbyte_s=1000"};
    words.insert(words.end(), more.begin(), more.end());
    SecondsOf(words);
    return ReadPlan(folder_.path() / "run/plan.json").buckets.size();
  };
  const auto with = [&](double fixed) {
    return buckets({"--set", "cluster.compress_costs=" + Write("costs.json", CostsWith(fixed))});
  };
  EXPECT_LT(with(0.05), with(0));
}

TEST_F(CompressCostsCommand, ThePlanOfARunHasTheNumbers) {
  const std::string file = Write("costs.json", CostsWith(0.05, "cpu", {"topk", "gaussiank"}));
  const fs::path run = folder_.path() / "run";
  SecondsOf({"--output", run.string(), "--set", "cluster.compress_costs=" + file, "--set",
             "compress.name=gaussiank"});
  const ExecutionPlan plan = ReadPlan(run / "plan.json");
  EXPECT_EQ(plan.compress_cost, *ReadCompressCosts(file).Find("gaussiank"));
  EXPECT_EQ(plan.workers, 4);
  EXPECT_EQ(plan.buckets, (std::vector<Range>{{0, 4'000'000}}));
  // Another run takes them from there.
  const auto seconds = [&](const std::string& setting) {
    return SecondsOf({"--set", "compress.name=gaussiank", "--set", setting});
  };
  EXPECT_EQ(seconds("plan=" + (run / "plan.json").string()),
            seconds("cluster.compress_costs=" + file));
  EXPECT_GT(seconds("cluster.compress_costs=" + file), seconds("cluster.memory_gbyte_s=8") + 0.4);
  // Without costs there is nothing to record.
  SecondsOf({"--output", (folder_.path() / "other").string()});
  EXPECT_THAT(ReadFile(folder_.path() / "other/plan.json"), Not(HasSubstr("compress_cost")));
}

TEST_F(CompressCostsCommand, TheProfileIsOfTheSameDevice) {
  const std::string setting = "cluster.compress_costs=" + Write("h.json", CostsWith(0.05, "cuda"));
  const CommandOutcome outcome = Simulate({"--set", setting, "--set", "compress.name=topk"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("--set cluster.compress_costs="),
                    HasSubstr("were measured on device 'cuda', the profile of four on 'cpu'"),
                    HasSubstr("dtrain bench topk --device cpu --costs FILE")));
}

TEST_F(CompressCostsCommand, ErrorsNameTheKeyAndTheFile) {
  const auto error = [&](const std::string& costs, const std::string& compress) {
    const std::string config =
        folder_.Write("run.yaml", "model: lenet5\ndata: digits\ncompress: {" + compress +
                                      "}\ncluster: {workers: 2, compress_costs: " + costs + "}\n");
    const CommandOutcome outcome = RunCommand({"check", "--config", config});
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  const std::string place = "run.yaml:4:23: ";
  EXPECT_THAT(error("./nowhere.json", "name: none"),
              AllOf(HasSubstr(place + "there is no file of compressor costs './nowhere.json'"),
                    HasSubstr("dtrain bench topk --costs FILE")));
  EXPECT_THAT(
      error("h2000", "name: none"),
      AllOf(HasSubstr(place + "there is no file of compressor costs 'h2000'"), HasSubstr("h200")));
  const std::string damaged = folder_.Write("damaged.json", "{\"schema\": 1, ");
  EXPECT_THAT(error(damaged, "name: none"),
              AllOf(HasSubstr(place), HasSubstr("damaged.json: not JSON")));
  const std::string file = Write("costs.json", CostsWith(0.05, "cpu", {"topk", "gaussiank"}));
  EXPECT_THAT(error(file, "name: dgc"),
              AllOf(HasSubstr(place),
                    HasSubstr("costs.json has no costs of compressor 'dgc'; it "
                              "has those of topk, gaussiank"),
                    HasSubstr("dtrain bench topk --compressors dgc --costs FILE")));
  EXPECT_THAT(error(file, "name: gaussiank, loop: published"),
              HasSubstr("has no costs of compressor 'gaussiank:loop=published'"));
}

TEST_F(CompressCostsCommand, AResumedSimulationGoesOnWithTheCostsOfTheRunBefore) {
  const std::string file = Write("costs.json", CostsWith(1e-3));
  const std::string setting = "cluster.compress_costs=" + file;
  const CommandOutcome whole = RunCommand(Numeric(folder_.path() / "a", "none", {setting}));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto forget_the_end = [&] {
    fs::remove(CheckpointFolder(folder_.path() / "a/checkpoints", 1).List().at(0));
  };
  const auto same = [&](const std::string& out) {
    nlohmann::json now = nlohmann::json::parse(out), before = nlohmann::json::parse(whole.out);
    for (const char* key : {"config_sha256", "step_seconds"}) {
      now.erase(key);
      before.erase(key);
    }
    return now == before;
  };
  forget_the_end();
  const CommandOutcome again = RunCommand(Numeric(folder_.path() / "a", "auto", {setting}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(same(again.out)) << again.out << whole.out;
  EXPECT_THAT(again.err, Not(HasSubstr("not bit-equal")));
  // The file was measured again meanwhile.
  forget_the_end();
  Write("costs.json", CostsWith(2e-3));
  const CommandOutcome other = RunCommand(Numeric(folder_.path() / "a", "auto", {setting}));
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(same(other.out)) << other.out << whole.out;
  EXPECT_EQ(ReadPlan(folder_.path() / "a/plan.json").compress_cost.samples,
            CostsWith(1e-3).costs[0].samples);
  // It is gone.
  forget_the_end();
  fs::remove(file);
  const CommandOutcome refused = RunCommand(Numeric(folder_.path() / "a", "auto", {setting}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("there is no file of compressor costs"));
}

TEST_F(CompressCostsCommand, AResumeThatAddsThemSaysSo) {
  const CommandOutcome whole = RunCommand(Numeric(folder_.path() / "a", "none", {}));
  ASSERT_EQ(whole.code, 0) << whole.err;
  fs::remove(CheckpointFolder(folder_.path() / "a/checkpoints", 1).List().at(0));
  std::vector<std::string> words =
      Numeric(folder_.path() / "a", "auto",
              {"cluster.compress_costs=" + Write("costs.json", CostsWith(1e-3))});
  const CommandOutcome again = RunCommand(words);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("not bit-equal to the undisturbed run"),
                               HasSubstr("compressor's cost passes -> topk by ")));
}

// A replay follows the order of the events and takes no time from the file.
TEST_F(CompressCostsCommand, AReplayNeedsNoFile) {
  const std::string file = Write("costs.json", CostsWith(1e-3));
  const std::string run = (folder_.path() / "run").string();
  const CommandOutcome trained =
      RunCommand({"train", "--config", kQuickstartRun, "--output", run, "--set",
                  "data.train_samples=64", "--set", "data.test_samples=40", "--set", "max_steps=2",
                  "--set", "strategy={name: ps_asp, placement: colocated, record: true}", "--set",
                  "compress.name=topk", "--set", "cluster.compress_costs=" + file});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(ReadFile(run + "/plan.json"), Not(HasSubstr("compress_cost")))
      << "a real run charges nothing";
  fs::remove(file);
  const CommandOutcome replayed = RunCommand({"simulate", "--replay", run + "/record.bin"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("equal to the bit"));
}

// Each shipped file says where its numbers are from, and a config takes it by name.
TEST_F(CompressCostsCommand, ShippedFilesAreTakenByName) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(DTRAIN_SOURCE_DIR "/configs/costs")) {
    const CompressCosts costs = ReadCompressCosts(entry.path());
    EXPECT_NE(costs.source, "");
    EXPECT_NE(costs.machine, "");
    EXPECT_NE(costs.Find("topk"), nullptr) << entry.path();
    EXPECT_NE(costs.Find("gaussiank"), nullptr) << entry.path();
    const CommandOutcome outcome =
        RunCommand({"check", "--config", kQuickstartRun, "--set", "compress.name=topk", "--set",
                    "cluster.compress_costs=" + entry.path().stem().string()});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    ++read;
  }
  EXPECT_GE(read, 2);
}

}  // namespace
}  // namespace dtrain
