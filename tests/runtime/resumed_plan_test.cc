// Tests which parts of an earlier execution plan (core/execution_plan.h) a resumed run keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/core/file.h"
#include "framework/setup/run_setup.h"
#include "framework/train/start_point.h"
#include "framework/train/training_step.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(DecidedPlan, ThreadsAreTheKeysElseThePlansElseTheRules) {
  const auto file = FreshFolder() / "plan.json";
  Spit(file, ToJson(ExecutionPlan{.threads = 5}));
  const auto threads = [](const std::string& keys) {
    config::Document document = config::Document::FromText(
        "model: lenet5\ndata: digits\n" + keys, DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
    const RunConfig config = ReadRunConfig(document);
    return DecidePlan(config, ReadModel(config), 1, /*threads_by_rule=*/3).threads;
  };
  EXPECT_EQ(threads(""), 3);
  EXPECT_EQ(threads("threads: 1\n"), 1);
  EXPECT_EQ(threads("plan: " + file.string() + "\n"), 5);
  EXPECT_EQ(threads("threads: 1\nplan: " + file.string() + "\n"), 1);
}

TEST(DecidedPlan, IsMeasuredOnAGpuAlone) {
  config::Document document =
      config::Document::FromText("model: lenet5\ndata: digits\nplan: measure\ndevice: cpu\n",
                                 DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
  const RunConfig config = ReadRunConfig(document);
  const Graph graph = ReadModel(config);
  ExecutionPlan plan = DecidePlan(config, graph, 1, 1);
  EXPECT_NO_THROW(MakeNet(graph, {.shares = {4}}, plan)) << "as dtrain eval does";
  try {
    MakeNet(graph, {.shares = {4}, .measure = true}, plan);
    FAIL() << "it was measured";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the kernels of a CPU are chosen by rule"));
  }
}

TEST(DecidedPlan, SaysWhereItIsNotTheFilesAndThatMatters) {
  const auto file = FreshFolder() / "plan.json";
  const auto said = [&](const std::string& collective, const std::string& keys) {
    Spit(file, ToJson(ExecutionPlan{.isa = IsaName(CpuIsa()),
                                    .workers = 2,
                                    .collective = collective,
                                    .buckets = {{0, 61706}}}));
    config::Document document = config::Document::FromText(
        "model: lenet5\ndata: digits\nplan: " + file.string() + "\ncollective: " + collective +
            "\ncluster: {workers: 2}\n" + keys,
        DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
    const RunConfig config = ReadRunConfig(document);
    testing::internal::CaptureStderr();
    DecidePlan(config, ReadModel(config), 2, 1);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said("ordered", "strategy: {name: wfbp}\n"), "");
  EXPECT_THAT(said("ring", "strategy: {name: mgwfbp}\n"),
              AllOf(HasSubstr("has no buckets for this run (mgwfbp, 2 workers, ring)"),
                    Not(HasSubstr("buckets 1 -> 0"))));
  EXPECT_THAT(said("ring", "strategy: {name: wfbp}\n"), HasSubstr("buckets 1 -> 5"));
  EXPECT_THAT(said("ordered", "strategy: {name: wfbp}\ncompress: topk\n"),
              HasSubstr("buckets 1 -> 5"));
}

TEST(ResumedPlan, KeepsThreadsKernelsAndChunks) {
  StartPoint start;
  start.plan =
      ExecutionPlan{.threads = 3, .chunk_bytes = 12288, .kernels = {{"conv1", "winograd"}}};
  ExecutionPlan plan = {.threads = 2, .chunk_bytes = 4096, .kernels = {{"conv1", "onednn"}}};
  config::Document defaults = config::Document::Empty();
  testing::internal::CaptureStderr();
  FollowPlanOf(start, ReadGhostConfig(defaults), plan);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(plan, *start.plan);
}

// The bits of the canonical sum do not depend on the buckets; those of a ring do.
TEST(ResumedPlan, OtherBucketsMatterToSomeCollectives) {
  config::Document defaults = config::Document::Empty();
  const RunConfig config = ReadGhostConfig(defaults);
  const auto said = [&](const std::string& before, const std::string& now) {
    StartPoint start;
    start.plan = ExecutionPlan{};
    start.plan->collective = before;
    start.plan->buckets = {{0, 10}};
    ExecutionPlan plan;
    plan.collective = now;
    plan.buckets = {{0, 5}, {5, 10}};
    testing::internal::CaptureStderr();
    FollowPlanOf(start, config, plan);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said("ordered", "ordered"), "");
  EXPECT_THAT(said("ring", "ring"), HasSubstr("its plan differs (buckets"));
  EXPECT_THAT(said("ring", "ordered"), HasSubstr("buckets"));
  EXPECT_THAT(said("ordered", "ring"), HasSubstr("buckets"));
}

// Neither do those of a sum of selections from each bucket.
TEST(ResumedPlan, OtherBucketsMatterToWhatIsSelectedFromThem) {
  const auto said = [](const std::string& compress) {
    config::Document document =
        config::Document::FromText("model: lenet5\ndata: digits\ncompress: " + compress,
                                   DTRAIN_SOURCE_DIR "/configs/runs/a.yaml");
    StartPoint start;
    start.plan = ExecutionPlan{.collective = "ordered", .buckets = {{0, 10}}};
    ExecutionPlan plan{.collective = "ordered", .buckets = {{0, 5}, {5, 10}}};
    testing::internal::CaptureStderr();
    FollowPlanOf(start, ReadRunConfig(document), plan);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said("{name: topk}"), HasSubstr("its plan differs (buckets"));
  EXPECT_THAT(said("{name: fp16}"), HasSubstr("its plan differs (buckets"));
  EXPECT_EQ(said("{name: topk, scope: layer}"), "");
}

// The plan is kept on other hosts too: equal bits are more important than short paths.
TEST(ResumedPlan, KeepsTheNodesOfItsSums) {
  config::Document defaults = config::Document::Empty();
  const RunConfig config = ReadGhostConfig(defaults);
  StartPoint start;
  start.plan = ExecutionPlan{.collective = "hierarchical", .node_of = {0, 0, 1, 1}};
  const auto follow = [&](ExecutionPlan& plan) {
    testing::internal::CaptureStderr();
    FollowPlanOf(start, config, plan);
    return testing::internal::GetCapturedStderr();
  };
  ExecutionPlan moved{.collective = "hierarchical", .node_of = {0, 1, 1, 0}};
  EXPECT_THAT(follow(moved),
              HasSubstr("hierarchical goes by the nodes of the run before (0 0 1 1)"));
  EXPECT_EQ(moved, *start.plan);
  EXPECT_EQ(follow(moved), "");
  ExecutionPlan fewer{.workers = 2, .collective = "hierarchical", .node_of = {0, 1}};
  EXPECT_THAT(follow(fewer), HasSubstr("nodes 0 0 1 1 -> 0 1"));
  ExecutionPlan ring{.collective = "ring"};
  EXPECT_THAT(follow(ring), HasSubstr("not bit-equal"));
  EXPECT_THAT(ring.node_of, testing::IsEmpty());
}

using ResumedPlanTest = RunFixture;

TEST_F(ResumedPlanTest, ARunGoesOnWithTheChunksOfItsPlanFile) {
  const auto config = [&](std::vector<std::string> more) {
    std::vector<std::string> overrides = {"output=" + (folder_ / "run").string(),
                                          "cluster.workers=2", "data.train_samples=64",
                                          "data.test_samples=10", "threads=1"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document =
        config::Document::FromText("model: {name: " DTRAIN_SOURCE_DIR
                                   "/configs/models/lenet5.yaml}\n"
                                   "data: {name: digits}\nbatch: 16\nepochs: 2\ncollective: ring\n"
                                   "solver: {name: sgd, lr: 0.01}\n",
                                   "run.yaml", overrides);
    return ReadRunConfig(document);
  };
  const auto saved = [&] {
    const CheckpointInfo info = ReadStoredInfo(FindCheckpoint(folder_ / "run"));
    return PlanFromJson(info.plan_json, "the checkpoint's plan");
  };
  EXPECT_EQ(BoundaryScheduleOf(config({}), 64).last_samples, 128);
  EXPECT_EQ(BoundaryScheduleOf(config({"max_steps=1"}), 64).last_samples, 16);
  EXPECT_EQ(BoundaryScheduleOf(config({"max_steps=9"}), 64).last_samples, 128);
  Run(config({"max_steps=1"}));
  ExecutionPlan plan = saved();
  EXPECT_NE(plan.chunk_bytes, 8192);
  plan.chunk_bytes = 8192;
  WriteFileDurably(folder_ / "plan.json", ToJson(plan));
  std::filesystem::remove_all(folder_ / "run");
  Run(config({"max_steps=1", "plan=" + (folder_ / "plan.json").string()}));
  EXPECT_EQ(saved().chunk_bytes, 8192);
  testing::internal::CaptureStderr();
  Run(config({"max_steps=2"}), {.resume = "auto", .weights = ""});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("not bit-equal")));
  EXPECT_EQ(saved().chunk_bytes, 8192);
}

}  // namespace
}  // namespace dtrain
