// Tests what `dtrain train` refuses and prints before it trains.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/file.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"
#include "tests/support/normed_model.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

// Returns a config of one short epoch with this model.
std::string Config(const TempFolder& folder, const std::string& model) {
  return folder.Write("run.yaml", "model: {name: " + model +
                                      "}\ndata: {name: digits, train_samples: 64, test_samples: "
                                      "64}\nepochs: 1\nthreads: 1\n");
}

constexpr char kLeNet[] = DTRAIN_SOURCE_DIR "/configs/models/lenet5.yaml";

TEST(TrainCommand, ASeedIsNamedOnce) {
  const TempFolder folder;
  const CommandOutcome outcome =
      RunCommand({"train", "--config", Config(folder, kLeNet), "--seeds", "1,2,1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--seeds names 1 twice"));
  const CommandOutcome simulated =
      RunCommand({"simulate", "--config", Config(folder, kLeNet), "--seeds", "1,1"});
  EXPECT_EQ(simulated.code, 2);
  EXPECT_THAT(simulated.err, HasSubstr("--seeds names 1 twice"));
  EXPECT_EQ(simulated.out, "");
}

TEST(SimulateCommand, OneWorkerIsOne) {
  const TempFolder folder;
  const CommandOutcome outcome =
      RunCommand({"simulate", "--config", Config(folder, kLeNet), "--workers", "1", "--set",
                  "batch=64", "--set", "strategy={name: allreduce}"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("allreduce with 1 worker: "));
  EXPECT_THAT(outcome.out, HasSubstr(" virtual s, 1 gradient, "));
}

// A pipe can be read once: one rank may read the file several times, several ranks may not.
TEST(TrainCommand, ConfigAndModelMayBePipes) {
  const TempFolder folder;
  const std::string model = ReadFile(kLeNet);
  const auto pipe = [&](const std::string& name, const std::string& text) {
    const std::string path = (folder / name).string();
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return std::jthread([path, text] {
      int fd = -1;  // opening fails until a process reads
      for (int tries = 0; fd < 0 && tries < 2000; ++tries) {
        ::usleep(10'000);
        fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      }
      EXPECT_EQ(::write(fd, text.data(), text.size()), std::ssize(text)) << path;
      ::close(fd);
    });
  };
  const auto train = [&](const std::string& workers) {
    const std::string config = ReadFile(Config(folder, (folder / ("model" + workers)).string()));
    const std::jthread writes_config = pipe("config" + workers, config);
    const std::jthread writes_model = pipe("model" + workers, model);
    return RunCommand({"train", "--config", (folder / ("config" + workers)).string(), "--workers",
                       workers, "--output", (folder / "run").string()});
  };
  const CommandOutcome several = train("2");
  EXPECT_EQ(several.code, 2);
  EXPECT_THAT(several.err, HasSubstr("config2 is a pipe, and every process of the run reads it"));
  const CommandOutcome one = train("1");
  EXPECT_EQ(one.code, 0) << one.err;
}

// The message has the option as given, not the config key that it sets.
TEST(TrainCommand, AnErrorOfAnOptionNamesTheOption) {
  const TempFolder folder;
  const std::string config = Config(folder, kLeNet);
  const CommandOutcome workers =
      RunCommand({"train", "--config", config, "--workers", "2", "--set", "batch=1"});
  EXPECT_EQ(workers.code, 2);
  EXPECT_THAT(workers.err, HasSubstr("smaller than the number of workers (2, --workers 2)"));
  EXPECT_THAT(
      RunCommand({"simulate", "--config", config, "--workers", "3", "--set", "batch=2"}).err,
      HasSubstr("(3, --workers 3)"));
  EXPECT_THAT(
      RunCommand({"train", "--config", config, "--output", "{tiem}", "--set", "max_steps=1"}).err,
      HasSubstr("--output '{tiem}': "));
  EXPECT_THAT(
      RunCommand({"check", "--config", config, "--set", "cluster.workers=2", "--set", "batch=1"})
          .err,
      HasSubstr("(2, --set cluster.workers=2)"));
}

TEST(TrainCommand, EveryErrorIsALineOfTheLog) {
  const TempFolder folder;
  const CommandOutcome outcome = RunCommand(
      {"check", "--config", Config(folder, kLeNet), "--set", "batch=0", "--set", "epoch=3"});
  EXPECT_EQ(outcome.code, 2);
  std::istringstream lines(outcome.err);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_THAT(line, HasSubstr(" error ")) << outcome.err;
  }
  EXPECT_EQ(count, 4) << "two errors, a hint and their number";
}

TEST(TrainCommand, AStartThatFailsLeavesNoFolder) {
  const TempFolder folder;
  const std::string config = Config(folder, kLeNet);
  const std::string run = (folder / "run").string();
  const std::vector<std::string> train = {"train", "--config", config, "--output", run};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = train;
    words.insert(words.end(), more.begin(), more.end());
    return RunCommand(words);
  };
  const std::vector<std::string> bad = {"--weights", (folder / "none").string()};
  EXPECT_EQ(with(bad).code, 6);
  EXPECT_FALSE(std::filesystem::exists(run));
  EXPECT_EQ(with({"--set", "data={name: mnist, root: " + folder.path().string() + "}"}).code, 3);
  EXPECT_FALSE(std::filesystem::exists(run));
  // Once a run has its folder, the error of a later start is kept there.
  EXPECT_EQ(with({"--set", "max_steps=1"}).code, 0);
  EXPECT_EQ(with({"--resume", (folder / "none").string()}).code, 6);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/errors/rank-0.json"));
}

TEST(TrainCommand, TheStartLineHasServersAndCompressor) {
  const TempFolder folder;
  const auto started = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", "--config", Config(folder, kLeNet), "--output",
                                      (folder / std::to_string(more.size())).string()};
    words.insert(words.end(), more.begin(), more.end());
    return RunCommand(words).err;
  };
  const std::string pushed = started({"--set", "strategy={name: ps_ssp, placement: colocated}",
                                      "--set", "compress={name: topk, density: 0.1}"});
  EXPECT_THAT(pushed, HasSubstr(" parameters, 1 worker and 1 server of 1 thread ("));
  EXPECT_THAT(pushed, HasSubstr("), ps_ssp, compressed by topk, batch 64, "));
  const std::string plain = started({});
  EXPECT_THAT(plain, HasSubstr("), allreduce, batch 64, 1 step -> "));
  EXPECT_THAT(plain, ::testing::Not(HasSubstr("device: auto")));
  EXPECT_THAT(started({"-v"}), HasSubstr("device: auto takes the CPU"));
}

TEST(EvalCommand, PrintsWhatARunPrintsAtItsEnd) {
  const TempFolder folder;
  const std::string run = (folder / "run").string();
  const CommandOutcome train =
      RunCommand({"train", "--config", Config(folder, kLeNet), "--output", run});
  const size_t at = train.out.find("test accuracy ");
  ASSERT_NE(at, std::string::npos) << train.out;
  const std::string line = train.out.substr(at, train.out.find('\n', at) - at);
  EXPECT_EQ(RunCommand({"eval", "--weights", run}).out, line + " (64 samples)\n");
  EXPECT_THAT(RunCommand({"eval", "--weights", run, "--split", "train"}).out,
              ::testing::StartsWith("train accuracy "));
}

// The statistics belong to no training: two runs of the same steps differ in them alone.
TEST(EvalCommand, EstimatesStatisticsAsARunDoes) {
  const TempFolder folder;
  const std::string config = Config(folder, folder.Write("normed.yaml", kNormedModel));
  // Returns the line with the result at the end of a run.
  const auto run = [&](const std::string& statistics) {
    const CommandOutcome outcome =
        RunCommand({"simulate", "--numeric", "--config", config, "--resume", "none", "--output",
                    (folder / statistics).string(), "--set", "cluster.workers=2", "--set",
                    "strategy={name: local_sgd, period: 9}", "--set", "max_steps=3", "--set",
                    "evaluate.statistics=" + statistics});
    const size_t at = outcome.out.find("test accuracy ");
    return outcome.out.substr(at, outcome.out.find('\n', at) - at) + " (64 samples)\n";
  };
  const auto evaluated = [&](const std::string& statistics) {
    return RunCommand({"eval", "--weights", (folder / "mean").string(), "--statistics", statistics})
        .out;
  };
  const std::string mean = run("mean"), estimate = run("estimate");
  EXPECT_NE(estimate, mean);
  EXPECT_EQ(evaluated("stored"), mean);
  EXPECT_EQ(evaluated("estimated"), estimate);
}

TEST(TrainCommand, AModelForOtherSamplesIsRefused) {
  const TempFolder folder;
  std::string text = ReadFile(kLeNet);
  text.replace(text.find("[1, 28, 28]"), 11, "[3, 28, 28]");
  const std::string model = folder.Write("three.yaml", text);
  const CommandOutcome outcome = RunCommand({"check", "--config", Config(folder, model)});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("three.yaml:3:1: the model is made for samples of [3, 28, "
                                     "28], those of digits are [1, 28, 28]"));
}

}  // namespace
}  // namespace dtrain
