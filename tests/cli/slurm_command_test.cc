#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/file.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Runs `dtrain slurm --config run.yaml ARGUMENTS...` with a config of 4 workers.
CommandOutcome Slurm(const TempFolder& folder, const std::vector<std::string>& arguments) {
  const std::string config =
      folder.Write("run.yaml", "model: {name: " DTRAIN_SOURCE_DIR
                               "/configs/models/lenet5.yaml}\ndata: {name: digits}\n"
                               "cluster: {workers: 4}\n");
  std::vector<std::string> words = {"slurm", "--config", config};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunCommand(words);
}

TEST(SlurmCommand, HandsOnWhatTheSiteWants) {
  const TempFolder folder;
  const CommandOutcome outcome =
      Slurm(folder, {"--account", "phys", "--qos", "long", "--mem", "0", "--gres", "nvme:2",
                     "--constraint", "skylake&ib", "--mail-type", "END,FAIL", "--mail-user",
                     "me@host", "--module", "gcc/12", "--module", "openmpi"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("--account=phys\n"), HasSubstr("--qos=long\n"), HasSubstr("--mem=0\n"),
            HasSubstr("--gres=nvme:2\n"), HasSubstr("--constraint=skylake&ib\n"),
            HasSubstr("--mail-type=END,FAIL\n"), HasSubstr("--mail-user=me@host\n"),
            HasSubstr("module load gcc/12 openmpi || exit\n")));
}

TEST(SlurmCommand, AValueThatIsLikeAnOptionIsRefused) {
  const TempFolder folder;
  for (const std::string option : {"--partition", "--account", "--qos", "--mem", "--gres",
                                   "--constraint", "--mail-type", "--mail-user", "--module"}) {
    const CommandOutcome outcome = Slurm(folder, {option + "=-p"});
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr("'-p' is no ")) << option;
  }
}

TEST(SlurmCommand, GpusThatTheRunWouldNotUseAreRefused) {
  const TempFolder folder;
  const CommandOutcome outcome = Slurm(folder, {"--gres", "gpu:2", "--device", "cpu"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--gres gpu:2 asks for GPUs"),
                                 HasSubstr("set device: cuda in the config")));
  EXPECT_EQ(Slurm(folder, {"--gres", "gpu:2"}).code, 0) << "device: auto takes them";
}

TEST(SlurmCommand, SharedNodesAreSaidToGiveFewCpus) {
  const TempFolder folder;
  const CommandOutcome outcome = Slurm(folder, {"--no-exclusive"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("--exclusive")));
  EXPECT_THAT(outcome.err, HasSubstr("--set threads=N"));
  EXPECT_THAT(Slurm(folder, {"--no-exclusive", "--set", "threads=2"}).err,
              Not(HasSubstr("--set threads=N")));
}

// Each node has a /tmp of its own.
TEST(SlurmCommand, AProgramInATemporaryFolderIsWarnedOf) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "tmp");
  const std::string copy = (folder / "tmp/dtrain").string();
  std::filesystem::copy_file(DTRAIN_BINARY_DIR "/dtrain", copy);
  const std::string config = folder.Write("run.yaml", "model: {name: " DTRAIN_SOURCE_DIR
                                                      "/configs/models/lenet5.yaml}\n"
                                                      "data: {name: digits}\n");
  const std::string said = (folder / "said").string();
  const std::string command = "TMPDIR=" + (folder / "tmp").string() + " " + copy +
                              " slurm --config " + config + " >/dev/null 2>" + said;
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(ReadFile(said), HasSubstr(copy + ", which is in a temporary folder"));
}

TEST(SlurmCommand, OnlyAScriptIsWrittenOver) {
  const TempFolder folder;
  const std::string text =
      "model: {name: " DTRAIN_SOURCE_DIR "/configs/models/lenet5.yaml}\ndata: {name: digits}\n";
  const std::string config = folder.Write("run.yaml", text);
  const CommandOutcome refused = RunCommand({"slurm", "--config", config, "--output", config});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr(config + " is there, and is no script"));
  EXPECT_EQ(ReadFile(config), text);
  const std::string script = (folder / "run.sbatch").string();
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(RunCommand({"slurm", "--config", config, "--output", script}).code, 0);
  }
}

TEST(SlurmCommand, PrintsTheScriptOfAConfig) {
  const TempFolder folder;
  const CommandOutcome outcome =
      Slurm(folder, {"--set", "threads=3", "--nodes", "2", "--time", "30", "--partition", "long"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("#!/bin/bash\n"), HasSubstr("--job-name=run\n"),
                    HasSubstr("--nodes=2\n"), HasSubstr("--cpus-per-task=3\n"),
                    HasSubstr("--time=30\n"), HasSubstr("--partition=long\n"),
                    HasSubstr("workers=4 servers=0 per_node=2\n"), HasSubstr("--set threads=3\n")));
}

TEST(SlurmCommand, WorkersOfTheCommandLineCount) {
  const TempFolder folder;
  EXPECT_THAT(Slurm(folder, {"--workers", "6", "--nodes", "3"}).out,
              HasSubstr("workers=6 servers=0 per_node=2\n"));
}

TEST(SlurmCommand, TheConfigSaysHowManyRanksANodeHas) {
  const TempFolder folder;
  EXPECT_THAT(Slurm(folder, {"--set", "cluster.per_node=4"}).out,
              AllOf(HasSubstr("--nodes=1\n"), HasSubstr("--ntasks-per-node=4\n")));
}

TEST(SlurmCommand, WritesAFileWhereAskedTo) {
  const TempFolder folder;
  const CommandOutcome outcome = Slurm(folder, {"--output", (folder / "job.sh").string()});
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(ReadFile(folder / "job.sh"), Slurm(folder, {}).out);
}

TEST(SlurmCommand, AsJsonTheScriptIsAField) {
  const TempFolder folder;
  EXPECT_THAT(Slurm(folder, {"--json", "--nodes", "2"}).out,
              AllOf(StartsWith("{\n  \"nodes\": 2,\n  \"per_node\": 2,\n  \"ranks\": 4,\n"),
                    HasSubstr("\"script\": \"#!/bin/bash\\n")));
}

TEST(SlurmCommand, AFaultyConfigPrintsNoScript) {
  const TempFolder folder;
  CommandOutcome outcome = Slurm(folder, {"--set", "batch=3"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("batch 3 is smaller than the number of workers (4, "));
  outcome = Slurm(folder, {"--servers-apart"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the run has no servers with ranks of their own"));
}

}  // namespace
}  // namespace dtrain
