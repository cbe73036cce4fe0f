// Tests `dtrain train --dry-run`: its report, the same errors as a run, and that it writes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kModels[] = DTRAIN_SOURCE_DIR "/configs/models/";

class DryRunCommand : public ::testing::Test {
 protected:
  DryRunCommand() {
    config_ = folder_.Write("run.yaml", fmt::format("model: {{name: {}lenet5.yaml}}\n"
                                                    "data: {{name: digits, train_samples: 100, "
                                                    "test_samples: 64}}\nbatch: 32\nepochs: 2\n"
                                                    "threads: 1\nsolver: {{name: sgd, lr: 0.01, "
                                                    "momentum: 0.9}}\n",
                                                    kModels));
  }

  // Runs `dtrain train` with its output in folder_/run, unless `more` changes it.
  CommandOutcome Train(std::vector<std::string> more) const {
    std::vector<std::string> words = {"train", "--config", config_};
    if (std::ranges::find(more, "--output") == more.end()) {
      words.insert(words.end(), {"--output", run()});
    }
    words.insert(words.end(), more.begin(), more.end());
    return RunCommand(words);
  }
  CommandOutcome Dry(std::vector<std::string> more) const {
    more.emplace_back("--dry-run");
    return Train(more);
  }
  json DryJson(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const CommandOutcome outcome = Dry(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json(IndentedJson(outcome.out)) : json();
  }
  // Leaves a finished run in folder_/run; `more` sets its length.
  void Trained(const std::string& more) const {
    const CommandOutcome outcome = Train({"--set", more});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  // Checks that it ends with the same message as the run, and leaves no files.
  void ExpectTheSameRefusal(const std::vector<std::string>& arguments, int code,
                            const std::string& what) const {
    const std::set<std::string> before = Files();
    const CommandOutcome dry = Dry(arguments);
    EXPECT_EQ(Files(), before);
    const CommandOutcome real = Train(arguments);
    EXPECT_EQ(dry.code, code) << dry.err;
    EXPECT_EQ(real.code, code) << real.err;
    EXPECT_THAT(dry.err, HasSubstr(what));
    EXPECT_EQ(ErrorsOf(dry.err), ErrorsOf(real.err));
    EXPECT_EQ(dry.out, "");
  }

  // Returns all files in the test's folder, with sizes and times.
  std::set<std::string> Files() const {
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      files.insert(fmt::format("{} {} {}", entry.path().string(),
                               entry.is_regular_file() ? entry.file_size() : 0,
                               entry.last_write_time().time_since_epoch().count()));
    }
    return files;
  }
  std::string run() const { return (folder_ / "run").string(); }

  TempFolder folder_;
  std::string config_;

 private:
  static std::vector<std::string> ErrorsOf(const std::string& err) {
    std::vector<std::string> errors;
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find(" error ");
      if (at != std::string::npos) errors.push_back(line.substr(at));
    }
    return errors;
  }
};

// "1.52 ms (6 steps on the run's batches, 21053 samples/s)", with 32 samples a step.
TEST_F(DryRunCommand, TheRateIsThatOfTheTimedSteps) {
  const CommandOutcome dry = Dry({});
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      dry.out, found, std::regex("([0-9.]+) ms \\([0-9]+ steps? on .*, ([0-9]+) samples/s")))
      << dry.out;
  const double milliseconds = std::stod(found[1]), rate = std::stod(found[2]);
  EXPECT_NEAR(rate * milliseconds / 1e3, 32, 32 * 0.01 + rate * 0.005 / 1e3);
}

TEST_F(DryRunCommand, SaysWhatTheRunThenDoes) {
  const std::set<std::string> before = Files();
  const json dry = DryJson({});
  EXPECT_EQ(Files(), before);
  const CommandOutcome real = Train({"--json"});
  ASSERT_EQ(real.code, 0) << real.err;
  const json summary = json::parse(real.out);
  for (const char* const key :
       {"strategy", "model", "dataset", "device", "precision", "compute", "workers", "global_batch",
        "epochs", "steps", "seed", "config_sha256"}) {
    ASSERT_TRUE(summary.contains(key)) << key;
    EXPECT_EQ(dry.value(key, json()), summary[key]) << key;
  }
  EXPECT_EQ(dry["plan"], json::parse(ReadFile(folder_ / "run/plan.json")));
  EXPECT_EQ(dry["parameters"], 61706);
  EXPECT_THAT(real.err, HasSubstr("lenet5 on digits: 61706 parameters"));
  EXPECT_EQ(dry["samples"], (json{{"train", 100}, {"test", 64}}));
  EXPECT_EQ(dry["steps_per_epoch"], 4);
  EXPECT_EQ(dry["last_step"], 8);
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/step-00000008.h5"));
  EXPECT_EQ(dry["worker_batch"], 32);
  EXPECT_EQ(dry["start"], (json{{"step", 0}, {"finished", false}}));
  EXPECT_EQ(dry["config"]["solver"]["momentum"], 0.9);
  EXPECT_GT(dry["step"]["seconds"], 0);
  EXPECT_EQ(dry["step"]["measured"], 10) << "without the first";
  EXPECT_DOUBLE_EQ(dry["estimated_seconds"], 8 * dry["step"]["seconds"].get<double>());
}

TEST_F(DryRunCommand, SaysItInWordsToo) {
  const CommandOutcome dry = Dry({"--set", "epochs=3"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(
      dry.out,
      AllOf(HasSubstr("data      digits: 100 training and 64 test samples\n"),
            HasSubstr("model     lenet5: 61706 parameters\n"),
            HasSubstr("workers   1 worker, batch 32; allreduce\n"),
            HasSubstr("run       3 epochs, 4 steps each, 12 steps in total\n"),
            HasSubstr("start     fresh, from initial weights\n"),
            HasSubstr(
                " per worker: weights 246.8 kB, gradients 246.8 kB, solver 246.8 kB, activations"),
            HasSubstr(", 1 thread per rank, fp32, 1 bucket; kernels: "),
            HasSubstr("; 12 steps take about "),
            HasSubstr("config    dtrain check --config " + config_ +
                      " --set epochs=3 --set output=")));
  EXPECT_THAT(dry.out, ::testing::ContainsRegex("kernels: [1-9][0-9]* [a-z_]+, [1-9]"));
  EXPECT_THAT(dry.out, Not(HasSubstr("momentum:")));
}

TEST_F(DryRunCommand, IsOneProcessForAllWorkersAndServers) {
  const json sums = DryJson({"--workers", "4"});
  EXPECT_EQ(sums["workers"], 4);
  EXPECT_EQ(sums["worker_batch"], 8);
  EXPECT_EQ(sums["collective"], "ordered");
  EXPECT_EQ(sums["memory"]["solver"], 4 * 61706) << "each worker updates its own weights";
  EXPECT_FALSE(sums.contains("estimated_seconds"));
  EXPECT_EQ(sums["plan"]["workers"], 4);

  const json pushed = DryJson({"--workers", "4", "--set", "strategy={name: ps_ssp, servers: 2}"});
  EXPECT_EQ(pushed["servers"], 2);
  EXPECT_EQ(pushed["memory"]["solver"], 0) << "the servers have it";
  EXPECT_EQ(pushed["config"]["cluster"]["workers"], 4);

  const CommandOutcome words =
      Dry({"--workers", "2", "--set", "compress={name: topk, density: 0.1}"});
  EXPECT_THAT(words.out, AllOf(HasSubstr("2 workers, batch 32 (16 per worker); allreduce, "
                                         "collective ordered, compressed by topk\n"),
                               HasSubstr("exchange 246.8 kB"),
                               HasSubstr("communication and waiting are not included\n")));
}

TEST_F(DryRunCommand, WhatOnlyTheRunCanMeasureStaysOpen) {
  const CommandOutcome open = Dry({"--workers", "2", "--set", "strategy.name=auto"});
  EXPECT_EQ(open.code, 0) << open.err;
  EXPECT_THAT(open.out, AllOf(HasSubstr("; auto, collective ordered\n"),
                              HasSubstr("buckets by times that the run measures first")));
  EXPECT_EQ(DryJson({"--set", "strategy.name=auto"})["strategy"], "allreduce");
}

TEST_F(DryRunCommand, FindsWhereTheRunGoesOn) {
  Trained("max_steps=4");
  const std::set<std::string> before = Files();
  const std::string file = (folder_ / "run/checkpoints/step-00000004.h5").string();
  const json further = DryJson({"--resume", "auto"});
  EXPECT_EQ(further["start"], (json{{"step", 4}, {"finished", false}, {"file", file}}));
  EXPECT_DOUBLE_EQ(further["estimated_seconds"], 4 * further["step"]["seconds"].get<double>());

  const json finished = DryJson({"--resume", "auto", "--set", "max_steps=4"});
  EXPECT_EQ(finished["start"]["finished"], true);
  EXPECT_THAT(Dry({"--resume", "auto", "--set", "max_steps=4"}).err,
              HasSubstr("is complete: step 4 of 4; with a higher max_steps it goes on"));
  EXPECT_FALSE(finished.contains("step"));

  const CommandOutcome other = Dry({"--output", (folder_ / "other").string(), "--weights", run()});
  EXPECT_THAT(other.out, HasSubstr("start     fresh, from the weights of " + file));
  EXPECT_EQ(Files(), before);
}

TEST_F(DryRunCommand, AFreshRunFolderHasNothingToGoOnWith) {
  const CommandOutcome dry =
      RunCommand({"train", "--config", config_, "--resume", "auto", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.err, HasSubstr("--resume auto starts afresh"));
  EXPECT_THAT(Dry({"--resume", "auto"}).err, Not(HasSubstr("afresh")));
  // Runs that begin in the same second have different folders.
  const std::string by_time = (folder_ / "at-{time}").string();
  EXPECT_EQ(Train({"--output", by_time, "--set", "max_steps=1"}).code, 0);
  const CommandOutcome beside = Dry({"--output", by_time});
  EXPECT_EQ(beside.code, 0) << beside.err;
}

TEST_F(DryRunCommand, RefusesMissingData) {
  ExpectTheSameRefusal(
      {"--set", "data.name=mnist", "--set", "data.root=" + folder_.path().string()}, 3,
      "data set 'mnist' is not here");
}

TEST_F(DryRunCommand, RefusesMissingWeightsAndCheckpoints) {
  const std::string nowhere = (folder_ / "nowhere").string();
  ExpectTheSameRefusal({"--weights", nowhere}, 6, nowhere);
  ExpectTheSameRefusal({"--set", "weights.from=" + nowhere}, 6, nowhere);
  ExpectTheSameRefusal({"--resume", nowhere}, 6, nowhere);
}

TEST_F(DryRunCommand, RefusesADamagedCheckpointAndAnotherModels) {
  Trained("max_steps=1");
  const fs::path file = folder_ / "run/checkpoints/step-00000001.h5";
  const std::string other = folder_.Write(
      "other.yaml",
      "name: other\nsample: [1, 28, 28]\nlayers:\n  - {name: fc1, type: inner_product, outputs: "
      "10}\n  - {name: loss, type: softmax_cross_entropy, input: [fc1, label]}\n");
  ExpectTheSameRefusal(
      {"--weights", run(), "--output", (folder_ / "b").string(), "--set", "model.name=" + other}, 6,
      "is of another model");
  ExpectTheSameRefusal({"--resume", "auto", "--set", "model.name=" + other}, 6,
                       "is of another model");
  std::string bytes = ReadFile(file);
  bytes[bytes.size() / 2] ^= 1;
  folder_.Write("run/checkpoints/step-00000001.h5", bytes);
  ExpectTheSameRefusal({"--resume", file.string(), "--output", (folder_ / "c").string()}, 6,
                       "step-00000001.h5");
  ExpectTheSameRefusal({"--resume", "auto"}, 6, "no checkpoint of");
}

TEST_F(DryRunCommand, RefusesARunFolderThatIsNotItsOwn) {
  Trained("max_steps=1");
  ExpectTheSameRefusal({}, 2, "holds the checkpoints of an earlier run");
  const std::string file = folder_.Write("file", "");
  const CommandOutcome dry = Dry({"--output", file + "/run"});
  EXPECT_EQ(dry.code, 6);
  EXPECT_THAT(dry.err, HasSubstr("cannot create folder " + file + ": Not a directory"));
  EXPECT_EQ(Train({"--output", file + "/run"}).code, 6);
}

TEST_F(DryRunCommand, RefusesAnotherBatchInTheMiddleOfAnEpoch) {
  Trained("max_steps=1");
  ExpectTheSameRefusal({"--resume", "auto", "--set", "batch=16"}, 6,
                       "lies in the middle of epoch 1, which was begun with batch 32");
}

TEST_F(DryRunCommand, TellsOfWeightsThatAreNotFinite) {
  const CommandOutcome dry = Dry({"--set", "solver.lr=1e30"});
  EXPECT_EQ(dry.code, 5);
  EXPECT_THAT(dry.err, HasSubstr("NaN or infinity"));
}

TEST_F(DryRunCommand, SaysWhatTakesLong) {
  ::setenv("DTRAIN_PROGRESS", "1", 1);  // as who shows a status line asks for
  const CommandOutcome dry =
      Dry({"--set", "data.train_samples=4096", "--set", "batch=4096", "--set", "epochs=1"});
  ::unsetenv("DTRAIN_PROGRESS");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.err, HasSubstr("timing steps for "));
}

TEST_F(DryRunCommand, SaysThatItLoadsData) {
  ::setenv("DTRAIN_PROGRESS", "1", 1);
  const CommandOutcome dry = Dry({"--set", "data.train_samples=150000"});
  ::unsetenv("DTRAIN_PROGRESS");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.err, HasSubstr("loading data for "));
}

TEST_F(DryRunCommand, NamesTheLayersThatAreFrozen) {
  EXPECT_THAT(Dry({}).out, Not(HasSubstr("frozen")));
  const std::vector<std::string> frozen = {"--set", "weights.freeze=[conv*]", "--set",
                                           "max_steps=1"};
  const std::string said =
      "conv1, conv2 (2 of 5 layers with parameters, 2572 of 61706 parameters)\n";
  EXPECT_THAT(Dry(frozen).out, HasSubstr("frozen    " + said));
  EXPECT_THAT(Train(frozen).err, HasSubstr("info frozen: " + said));
}

TEST_F(DryRunCommand, SaysWhichWeightsAreReinitialised) {
  Trained("max_steps=1");
  const CommandOutcome dry = Dry({"--output", (folder_ / "other").string(), "--set",
                                  "weights.from=" + run(), "--set", "weights.except=[fc*]"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.err,
              HasSubstr("weights of " + run() + "; re-initialised: fc* (59134 numbers)\n"));
}

TEST_F(DryRunCommand, OfSeveralSeedsItIsTheFirst) {
  const json dry = DryJson({"--seeds", "7,8,9"});
  EXPECT_EQ(dry["seed"], 7);
  EXPECT_EQ(dry["runs"], 3);
  EXPECT_EQ(dry["config"]["output"], run() + "/seed-7");
}

TEST_F(DryRunCommand, EqualsARunOnRealData) {
  if (RealDataRoot("mnist").empty()) GTEST_SKIP() << NoRealData("mnist");
  const std::vector<std::string> few = {"--set", "data={name: mnist, limit: 500}"};
  const json dry = DryJson(few);
  EXPECT_EQ(dry["samples"]["train"], 500);
  std::vector<std::string> real = few;
  real.emplace_back("--json");
  const json summary = json::parse(Train(real).out);
  EXPECT_EQ(dry["steps"], summary["steps"]);
  EXPECT_EQ(dry["config_sha256"], summary["config_sha256"]);
}

// Replaces ssh by a script that counts its calls; only `good` can be reached.
class DryRunOnHosts : public DryRunCommand {
 protected:
  DryRunOnHosts() {
    const std::string agent = folder_.Write(
        "agent", fmt::format("#!/bin/sh\necho asked >> {}\n[ $1 = good ] || exit 255\n"
                             "exec sh -c \"orted() {{ :; }}; $2\"\n",
                             asked()));
    fs::permissions(agent, fs::perms::owner_all);
    ::setenv("OMPI_MCA_plm_rsh_agent", agent.c_str(), 1);
    ::unsetenv("SLURM_JOB_ID");
  }
  ~DryRunOnHosts() override { ::unsetenv("OMPI_MCA_plm_rsh_agent"); }
  std::string asked() const { return (folder_ / "asked").string(); }
};

TEST_F(DryRunOnHosts, AsksEachHost) {
  const CommandOutcome dry = Dry({"--hosts", "localhost:2,good:2"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out,
              AllOf(HasSubstr("workers   4 workers"),
                    HasSubstr("hosts     localhost:2,good:2; the data and devices of other "
                              "machines were not looked at")));
  EXPECT_EQ(ReadFile(asked()), "asked\n");
  const CommandOutcome absent = Dry({"--hosts", "localhost:2,absent:2"});
  EXPECT_EQ(absent.code, 2);
  EXPECT_THAT(absent.err, HasSubstr("no program can be started on host absent"));
}

// This mpirun starts nothing and succeeds.
TEST_F(DryRunOnHosts, ARunOfSeveralSeedsAsksOnce) {
  fs::permissions(folder_.Write("bin/mpirun", "#!/bin/sh\nexit 0\n"), fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((folder_ / "bin").string() + ":" + path).c_str(), 1);
  const CommandOutcome runs = Train({"--hosts", "localhost:1,good:1", "--seeds", "1,2,3"});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_NE(runs.code, 0) << "there are no results";
  EXPECT_EQ(ReadFile(asked()), "asked\n");
}

// Counts how often a file was opened since construction.
class Opened {
 public:
  explicit Opened(const fs::path& path) : fd_(::inotify_init1(IN_NONBLOCK)) {
    ::inotify_add_watch(fd_, path.c_str(), IN_OPEN | IN_CLOSE);  // equal events in a row are merged
  }
  ~Opened() { ::close(fd_); }
  Opened(const Opened&) = delete;

  int count() const {
    int opened = 0;
    inotify_event event = {};
    while (::read(fd_, &event, sizeof event) == sizeof event) opened += (event.mask & IN_OPEN) != 0;
    return opened;
  }

 private:
  const int fd_;
};

TEST_F(DryRunCommand, ReadsATableOnce) {
  std::string table = "a,b,kind\n";
  for (int i = 0; i < 64; ++i)
    table += fmt::format("{},{},{}\n", i, 64 - i, i < 32 ? "low" : "high");
  const fs::path file = folder_.Write("t.csv", table);
  const std::string model = folder_.Write(
      "line.yaml",
      "name: line\nsample: [2]\nlayers:\n  - {name: fc1, type: inner_product, outputs: 2}\n  - "
      "{name: loss, type: softmax_cross_entropy, input: [fc1, label]}\n");
  const auto data = [&](const std::string& more) {
    return std::vector<std::string>{
        "--set", "model.name=" + model,
        "--set", "strategy.name=auto",
        "--set", fmt::format("data={{name: csv, train: {}{}}}", file.string(), more)};
  };
  int once = 0;
  {
    const Opened opened(file);
    std::vector<std::string> check = data("");
    check.insert(check.begin(), {"check", "--config", config_});
    EXPECT_EQ(RunCommand(check).code, 0);
    once = opened.count();
  }
  ASSERT_GT(once, 0);
  for (const std::string more : {"--dry-run", "--resume=none", "--hosts=localhost:2 --dry-run"}) {
    const Opened opened(file);
    std::vector<std::string> words = data(", class_names: [low, high]");
    std::istringstream parts(more);
    for (std::string part; parts >> part;) words.push_back(part);
    const CommandOutcome outcome = Train(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(opened.count(), once) << more;
    fs::remove_all(run());
  }
}

}  // namespace
}  // namespace dtrain
