// Real runs that start at the same time: each gets its own folder or is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRuns = 12;

class RunFolderSystemTest : public SystemTest {
 protected:
  // Starts all of them, waits, and returns how often each exit code occurred.
  std::map<std::string, int> StartTogether(const std::string& more) {
    const std::string one = std::string(kSmall) + "--set threads=1 " + more;
    const std::string loop = "for i in $(seq " + std::to_string(kRuns) +
                             "); do (" DTRAIN_BINARY_DIR "/dtrain " + one +
                             " >\"$OUT/out.$i\" 2>\"$OUT/err.$i\"; echo $? >\"$OUT/code.$i\") & "
                             "done; wait;";
    EXPECT_EQ(Run("list solvers", loop).code, 0);
    std::map<std::string, int> codes;
    for (int i = 1; i <= kRuns; ++i) ++codes[Slurp(folder_ / ("code." + std::to_string(i)))];
    return codes;
  }
};

TEST_F(RunFolderSystemTest, TwelveThatStartAtOnceLeaveTwelveSummaries) {
  EXPECT_EQ(StartTogether(""), (std::map<std::string, int>{{"0\n", kRuns}}));
  int summaries = 0;
  for (const auto& run : fs::directory_iterator(folder_ / "runs")) {
    summaries += fs::exists(run.path() / "summary.json") ? 1 : 0;
    EXPECT_FALSE(fs::exists(run.path() / "run.lock")) << run.path();
  }
  EXPECT_EQ(summaries, kRuns);
}

TEST_F(RunFolderSystemTest, OfTwelveWithOneOutputOneRuns) {
  EXPECT_EQ(StartTogether("--set epochs=20 --output same"),
            (std::map<std::string, int>{{"0\n", 1}, {"2\n", kRuns - 1}}));
  EXPECT_EQ(WeightsOf("same").size(), 64u);
  // A run that starts after the first one's end finds that one's checkpoints.
  const auto refused =
      AnyOf(AllOf(HasSubstr("another run writes into same: process "), HasSubstr(" on ")),
            HasSubstr("same holds the checkpoints of an earlier run"));
  for (int i = 1; i <= kRuns; ++i) {
    const std::string number = std::to_string(i);
    if (Slurp(folder_ / ("code." + number)) == "0\n") continue;
    EXPECT_THAT(Slurp(folder_ / ("err." + number)),
                AllOf(refused, HasSubstr("choose another --output")));
  }
}

TEST_F(RunFolderSystemTest, ARunThatNeverBeganLeavesNoFolder) {
  std::ofstream(folder_ / "model.yaml") << "name: none\nlayers:\n  - {name: a, type: flaten}\n";
  EXPECT_EQ(Run(std::string(kSmall) + "--set model.name=model.yaml").code, 2);
  EXPECT_TRUE(fs::is_empty(folder_ / "runs"));
}

// Files that existed before stay, however the run ends.
TEST_F(RunFolderSystemTest, AFailedRunRemovesNothingThatItDidNotMake) {
  std::ofstream(folder_ / "file") << "mine";
  fs::create_directories(folder_ / "folder");
  fs::create_directory_symlink(folder_ / "folder", folder_ / "link");
  const std::string failing = std::string(kSmall) + "--weights nothing-there --output ";
  for (const char* output : {"file", "link", "folder"}) {
    EXPECT_EQ(Run(failing + output).code, 6) << output;
    EXPECT_TRUE(fs::exists(fs::symlink_status(folder_ / output))) << output;
  }
  EXPECT_EQ(Slurp(folder_ / "file"), "mine");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
}

}  // namespace
}  // namespace dtrain
