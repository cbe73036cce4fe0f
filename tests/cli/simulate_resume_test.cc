// Tests `dtrain simulate --output DIR --resume auto`, in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/file.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/cli/command_outcome.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class SimulateResume : public ::testing::Test {
 protected:
  static std::vector<std::string> Words(const fs::path& output, const std::string& resume) {
    return {"simulate",
            "--config",
            DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml",
            "--output",
            output.string(),
            "--resume",
            resume,
            "--set",
            "data.train_samples=320",
            "--set",
            "data.test_samples=40",
            "--set",
            "epochs=2",
            "--set",
            "strategy={name: ps_ssp}",
            "--set",
            "cluster.workers=2",
            "--set",
            "cluster.step_seconds=0.1",
            "--json"};
  }
  static std::string Without(nlohmann::json summary) {
    summary.erase("config_sha256");
    summary.erase("step_seconds");
    return summary.dump(1);
  }
  const fs::path folder_ = FreshFolder();
};

TEST_F(SimulateResume, SaysWhatItComputesOnUnlessItIsQuiet) {
  std::vector<std::string> words = Words(folder_ / "a", "none");
  words.emplace_back("-v");
  EXPECT_THAT(RunCommand(words).err, Not(HasSubstr("device: auto takes the CPU")));
  words = Words(folder_ / "b", "none");
  words.back() = "-v";
  EXPECT_THAT(RunCommand(words).err, HasSubstr("device: auto takes the CPU"));
}

TEST_F(SimulateResume, GoesOnToTheSameSummary) {
  const CommandOutcome whole = RunCommand(Words(folder_ / "a", "none"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::vector<fs::path> checkpoints = CheckpointFolder(folder_ / "a/checkpoints", 1).List();
  ASSERT_EQ(checkpoints.size(), 2u);
  // A folder with checkpoints is not overwritten.
  EXPECT_THAT(RunCommand(Words(folder_ / "a", "none")).err, HasSubstr("--resume auto"));
  fs::remove(checkpoints[0]);
  const CommandOutcome again = RunCommand(Words(folder_ / "a", "auto"));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Without(nlohmann::json::parse(again.out)), Without(nlohmann::json::parse(whole.out)));
  EXPECT_EQ(CheckpointFolder(folder_ / "a/checkpoints", 1).List(), checkpoints);
  const std::string metrics = ReadFile(folder_ / "a/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2);  // one evaluation per epoch
}

TEST_F(SimulateResume, OfARunThatIsFinishedThereIsNothingToDo) {
  const CommandOutcome whole = RunCommand(Words(folder_ / "a", "none"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto config_written = fs::last_write_time(folder_ / "a/config.yaml");
  const auto summary_written = fs::last_write_time(folder_ / "a/summary.json");
  const CommandOutcome again = RunCommand(Words(folder_ / "a", "auto"));
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("nothing to do: the run in "));
  EXPECT_EQ(again.out, whole.out) << "its summary";
  EXPECT_EQ(fs::last_write_time(folder_ / "a/config.yaml"), config_written);
  EXPECT_EQ(fs::last_write_time(folder_ / "a/summary.json"), summary_written);
}

TEST_F(SimulateResume, NeedsAFolder) {
  const CommandOutcome outcome =
      RunCommand({"simulate", "--config", DTRAIN_SOURCE_DIR "/configs/runs/quickstart.yaml",
                  "--resume", "auto"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--output DIR"));
}

}  // namespace
}  // namespace dtrain
