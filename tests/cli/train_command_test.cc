// What `dtrain train` refuses, and says, before anything is trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/core/file.h"
#include "tests/cli/command_outcome.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

// A config of one short epoch, with `model` for its model.
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
