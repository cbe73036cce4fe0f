#include "framework/results/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/error.h"
#include "framework/core/timeline_file.h"
#include "framework/results/run_record.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

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

// This holds for a resume too, since `--resume auto` may be the first start.
TEST(RunFolder, WhatNoRunHasWrittenIsNotWrittenOver) {
  for (const char* name :
       {"config.yaml", "metrics.jsonl", "ranks.jsonl", "gradients.jsonl", "summary.json",
        "plan.json", "profile.json", "record.bin", "timeline.json", "errors/rank-0.json",
        "errors/rank-12.json", "checkpoints/latest"}) {
    const RunFolder run(FreshFolder());
    std::filesystem::create_directories((run.path() / name).parent_path());
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

// Another program's profile is in the folder of a run that had none.
TEST(RunFolder, WhatARunHasNotWrittenIsNotWrittenOverWhereItGoesOn) {
  for (const char* name : {"profile.json", "record.bin", "timeline.json", "errors/rank-0.json"}) {
    const CheckpointSample sample;
    const RunFolder run(FreshFolder());
    run.WritePlan({.isa = "avx2"});
    CheckpointFolder(run.checkpoints(), 1).Save(sample.View());
    std::filesystem::create_directories((run.path() / name).parent_path());
    Spit(run.path() / name, "{}");
    EXPECT_THAT(WhatOf<UsageError>([&] { const RunLock lock = run.Create(/*resuming=*/true); }),
                HasSubstr(std::string(name) + " was not written by a run"));
  }
}

TEST(RunFolder, APipeIsNamedBeforeTheRun) {
  for (const char* name : {"timeline.json", "record.bin", "summary.json"}) {
    const RunFolder run(FreshFolder());
    ASSERT_EQ(::mkfifo((run.path() / name).c_str(), 0600), 0);
    EXPECT_EQ(WhatOf<UsageError>([&] { const RunLock lock = run.Create(/*resuming=*/false); }),
              (run.path() / name).string() + " is a pipe, not a regular file");
  }
}

TEST(RunFolder, FilesThatARunWritesInTheEndMakeWayForTheNext) {
  const RunFolder run(FreshFolder());
  run.WriteProfile({.model = "net"});
  WriteRecord(run.record(), {});
  TimelineFile(run.timeline()).Finish();
  run.WriteError({.rank = 12, .what = "loss is nan"});
  Spit(run.path() / "errors/rank-mine.json", "not of that name");
  { const RunLock lock = run.Create(/*resuming=*/false); }
}

// The line files are not synced, so a power failure may leave them incomplete.
TEST(RunFolder, ARunBeginsAgainWhereTheMachinesPowerWent) {
  for (const bool has_plan : {true, false}) {  // a simulation has no plan
    const RunFolder run(FreshFolder());
    if (has_plan) run.WritePlan({.isa = "avx2"});
    if (has_plan) run.WriteConfig("seed: 1\n");
    Spit(run.metrics(), std::string(300, '\0'));
    Spit(run.ranks(), has_plan ? std::string(30, '\0') + "{\"step\"" : "");
    { const RunLock lock = run.Create(/*resuming=*/true); }
    run.CheckFree(/*resuming=*/true);
  }
}

TEST(RunFolder, ARunDoesNotReplaceTheBestWeightsOfAnEarlierOne) {
  const RunFolder run(FreshFolder());
  const std::filesystem::path best = run.checkpoints() / kBestName;
  std::filesystem::create_directories(run.checkpoints());
  Spit(best, "weights");
  const std::string refusal =
      best.string() +
      " holds the best weights of an earlier run | move it away, or choose another "
      "--output";
  const auto try_it = [&](bool resuming) {
    return MessageOf<UsageError>([&] { const RunLock lock = run.Create(resuming); });
  };
  for (const bool resuming : {false, true}) EXPECT_EQ(try_it(resuming), refusal);
  run.WritePlan({.isa = "avx2"});
  EXPECT_EQ(try_it(false), refusal);
  // The run was killed before its first checkpoint.
  { const RunLock lock = run.Create(/*resuming=*/true); }
  run.CheckFree(/*resuming=*/true);
  run.WriteSummary({.status = "completed"});
  EXPECT_EQ(try_it(true), refusal) << "somebody has removed its checkpoints";
  const auto later = std::filesystem::last_write_time(run.summary()) + std::chrono::seconds(1);
  std::filesystem::last_write_time(run.plan(), later);
  { const RunLock lock = run.Create(/*resuming=*/true); }  // the summary is that of an earlier run
  EXPECT_EQ(Slurp(best), "weights");
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
