// Tests --cluster NAME, which every command with --config accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CommandOutcome With(const TempFolder& folder, const std::string& command,
                    const std::vector<std::string>& arguments) {
  const std::string config =
      folder.Write("run.yaml", "model: {name: " DTRAIN_SOURCE_DIR
                               "/configs/models/lenet5.yaml}\ndata: {name: digits}\n"
                               "cluster: {workers: 4, gflops: 7}\n");
  std::vector<std::string> words = {command, "--config", config};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunCommand(words);
}

TEST(ClusterOption, LaysAClusterOverTheConfigsSection) {
  const TempFolder folder;
  const CommandOutcome outcome = With(folder, "check", {"--cluster", "hetero_1_2_3_4"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("workers: 16\n"), HasSubstr("slowdown: [1, 2, 3, 4]\n"),
                                 HasSubstr("gflops: 7\n")));
  EXPECT_THAT(
      With(folder, "check", {"--cluster", "hetero_1_2_3_4", "--set", "cluster.slowdown=[1, 4]"})
          .out,
      HasSubstr("slowdown: [1, 4]\n"));
}

TEST(ClusterOption, AnUnknownClusterIsAnsweredWithTheNames) {
  const TempFolder folder;
  for (const char* command : {"check", "train", "simulate", "sweep", "slurm"}) {
    const CommandOutcome outcome = With(folder, command, {"--cluster", "tianhe"});
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("there is no cluster 'tianhe'"),
                                   HasSubstr("did you mean 'tianhe2'?")))
        << command;
  }
}

TEST(ClusterOption, ABatchScriptPassesItOn) {
  const TempFolder folder;
  EXPECT_THAT(
      With(folder, "slurm", {"--cluster", "tianhe2"}).out,
      AllOf(HasSubstr("--cluster tianhe2"), HasSubstr("workers=16"), HasSubstr("per_node=4\n")));
}

// An error is reported with its line in the cluster file.
TEST(ClusterOption, ErrorsInItsFileAreReportedThere) {
  const TempFolder folder;
  const std::string file = folder.Write("mine.yaml", "cluster: {wrkers: 2}\n");
  const CommandOutcome outcome = With(folder, "check", {"--cluster", file});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(file + ":1:11: unknown key 'wrkers'"));
}

// The compressors belong to another section, in which their names are looked up.
TEST(ComparedCompressor, IsNamedBehindTheStrategy) {
  const TempFolder folder;
  const CommandOutcome outcome =
      With(folder, "simulate", {"--compare", "ps_asp+nothing_like_it", "--set", "max_steps=1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("compress"));
}

}  // namespace
}  // namespace dtrain
