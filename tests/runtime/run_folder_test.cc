#include "framework/runtime/results/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "tests/support/message_of.h"
#include "tests/weights/checkpoint_sample.h"

namespace dtrain {
namespace {

TEST(RunFolder, HoldsTheSmallFiles) {
  const RunFolder run(FreshFolder() / "a" / "b");
  const RunLock lock = run.Create(/*resuming=*/false);
  run.WriteConfig("seed: 1\n");
  run.WritePlan({.isa = "avx2"});
  run.WriteSummary({.status = "completed"});
  run.WriteError({.rank = 3,
                  .host = "node1",
                  .pid = 77,
                  .exit_code = 5,
                  .epoch = 1,
                  .step = 815,
                  .what = "loss is nan",
                  .hint = "lower lr"});
  EXPECT_EQ(Slurp(run.path() / "config.yaml"), "seed: 1\n");
  EXPECT_EQ(ReadPlan(run.path() / "plan.json").isa, "avx2");
  EXPECT_EQ(nlohmann::json::parse(Slurp(run.path() / "summary.json"))["status"], "completed");
  EXPECT_EQ(
      nlohmann::json::parse(Slurp(run.path() / "errors/rank-3.json")),
      nlohmann::json::parse(R"({"schema":1,"rank":3,"host":"node1","pid":77,"exit_code":5,"epoch":1,
                "step":815,"what":"loss is nan","hint":"lower lr"})"));
}

TEST(RunFolder, AnErrorIsWrittenForReaders) {
  EXPECT_EQ(ToJson(ErrorRecord{.rank = 1,
                               .host = "node1",
                               .pid = 7,
                               .exit_code = 3,
                               .epoch = 2,
                               .step = 20,
                               .what = "no file Bücher\xff",
                               .hint = "fetch it"}),
            "{\n  \"schema\": 1,\n  \"rank\": 1,\n  \"host\": \"node1\",\n  \"pid\": 7,\n  "
            "\"exit_code\": 3,\n"
            "  \"epoch\": 2,\n  \"step\": 20,\n  \"what\": \"no file Bücher\xEF\xBF\xBD\",\n"
            "  \"hint\": \"fetch it\"\n}\n");
}

TEST(RunFolder, AFreshRunDoesNotBuryCheckpoints) {
  const CheckpointSample sample;
  const RunFolder run(FreshFolder());
  CheckpointFolder(run.checkpoints(), 1).Save(sample.View());
  try {
    const RunLock lock = run.Create(/*resuming=*/false);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), run.path().string() + " holds the checkpoints of an earlier run");
    EXPECT_EQ(error.hint(), "continue it with --resume auto, or choose another --output");
  }
  const RunLock lock = run.Create(/*resuming=*/true);
}

// Resumed or not: `--resume auto` may be the first start.
TEST(RunFolder, WhatNoRunHasWrittenIsNotWrittenOver) {
  for (const char* name : {"config.yaml", "metrics.jsonl", "summary.json", "plan.json"}) {
    const RunFolder run(FreshFolder());
    Spit(run.path() / name, "model: mine\n");
    const std::string refusal =
        (run.path() / name).string() +
        " was not written by a run, and one with this output would write over it";
    for (const bool resuming : {false, true}) {
      EXPECT_EQ(WhatOf<UsageError>([&] { const RunLock lock = run.Create(resuming); }), refusal);
      EXPECT_EQ(WhatOf<UsageError>([&] { run.CheckFree(resuming); }), refusal);
    }
    EXPECT_EQ(Slurp(run.path() / name), "model: mine\n");
  }
}

TEST(RunFolder, ARunsOwnFilesMakeWayForTheNext) {
  const RunFolder run(FreshFolder());
  run.WritePlan({.isa = "avx2"});
  run.WriteConfig("seed: 1\n");
  Spit(run.metrics(), "{\"schema\": 1, \"step\": 1}\n");
  { const RunLock lock = run.Create(/*resuming=*/false); }
  std::filesystem::remove(run.plan());
  run.WriteSummary({.status = "completed"});  // of a simulation
  { const RunLock lock = run.Create(/*resuming=*/false); }
}

TEST(RunFolder, OneThatStaysEmptyGoesWithItsRun) {
  const std::filesystem::path made = FreshFolder() / "made";
  { const RunLock lock = RunFolder(made).Create(/*resuming=*/false); }
  EXPECT_FALSE(std::filesystem::exists(made));
  {
    const RunFolder run(made);
    const RunLock lock = run.Create(/*resuming=*/false);
    run.WriteConfig("seed: 1\n");
  }
  EXPECT_TRUE(std::filesystem::exists(made / "config.yaml"));
  const std::filesystem::path given = FreshFolder();
  { const RunLock lock = RunFolder(given).Create(/*resuming=*/false); }
  EXPECT_TRUE(std::filesystem::exists(given)) << "somebody else made it";
}

TEST(RunFolder, OneThatCannotBeMadeIsNamed) {
  const std::filesystem::path file = FreshFolder() / "file";
  Spit(file, "in the way");
  try {
    const RunLock lock = RunFolder(file / "run").Create(/*resuming=*/false);
    FAIL() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_EQ(error.what(),
              "cannot create folder " + (file / "run").string() + ": Not a directory");
  }
}

}  // namespace
}  // namespace dtrain
