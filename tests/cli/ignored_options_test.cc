// Options that would have no effect together are refused (code 2) or reported.
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

constexpr char kQuickstart[] = DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml";

// The record is not opened: it does not exist.
TEST(IgnoredOptions, AReplayTakesNoOtherOption) {
  const std::vector<std::vector<std::string>> others = {{"--config", kQuickstart},
                                                        {"--set", "solver.lr=1"},
                                                        {"--cluster", "wan"},
                                                        {"--device", "cpu"},
                                                        {"--profile", "profile.json"},
                                                        {"--trace", "other.bin"},
                                                        {"--workers", "3"},
                                                        {"--compare", "ps_asp"},
                                                        {"--seeds", "1,2"},
                                                        {"--numeric"},
                                                        {"--output", "runs/x"},
                                                        {"--resume", "auto"}};
  for (const std::vector<std::string>& other : others) {
    std::vector<std::string> words = {"simulate", "--replay", "record.bin"};
    words.insert(words.end(), other.begin(), other.end());
    const CommandOutcome outcome = RunCommand(words);
    EXPECT_EQ(outcome.code, 2) << other[0];
    EXPECT_THAT(outcome.err, HasSubstr("--replay repeats the recorded run as it was: " + other[0] +
                                       " would change nothing"));
  }
}

TEST(IgnoredOptions, AResumeFromACheckpointTakesNoOtherWeights) {
  const CommandOutcome outcome =
      RunCommand({"train", "--config", kQuickstart, "--resume", "runs/x", "--weights", "w.h5"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--resume runs/x goes on with the weights of that"),
                                 HasSubstr("give one of the two")));
}

TEST(IgnoredOptions, ATraceIsRefusedWhereNothingGoesByIt) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"plan"}, {"bench", "sums"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--config", kQuickstart, "--trace", "record.bin"});
    const CommandOutcome outcome = RunCommand(words);
    EXPECT_EQ(outcome.code, 2) << command[0];
    EXPECT_THAT(outcome.err, HasSubstr("--trace gives recorded step times"));
  }
}

TEST(IgnoredOptions, ARunOfOneRankSaysThatNobodyRestartsIt) {
  const TempFolder folder;
  const CommandOutcome outcome = RunCommand(
      {"train", "--config", kQuickstart, "--output", folder / "run", "--max-restarts", "2", "--set",
       "max_steps=1", "--set", "data.train_samples=64", "--set", "data.test_samples=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--max-restarts does nothing for a run of one rank"));
}

}  // namespace
}  // namespace dtrain
