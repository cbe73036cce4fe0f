#include "framework/core/execution_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "framework/core/error.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

ExecutionPlan SamplePlan() {
  return {.isa = "avx512",
          .threads = 2,
          .workers = 4,
          .collective = "ordered",
          .chunk_bytes = 1 << 20,
          .buckets = {{0, 500}, {500, 1234}},
          .kernels = {{"conv1", "onednn:nhwc"}, {"ip1", "sgemm"}}};
}

std::string Edited(const std::string& from, const std::string& to) {
  std::string text = ToJson(SamplePlan());
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string ErrorOf(const std::string& text) {
  return WhatOf<ConfigError>([&] { PlanFromJson(text, "plan.json"); });
}

TEST(ExecutionPlan, SurvivesJson) {
  EXPECT_EQ(PlanFromJson(ToJson(SamplePlan()), "plan.json"), SamplePlan());
  EXPECT_EQ(PlanFromJson(ToJson(ExecutionPlan{}), "plan.json"), ExecutionPlan{});
}

TEST(ExecutionPlan, KnowsWhatItsBucketsWereMeasuredFor) {
  ExecutionPlan plan = SamplePlan();
  plan.measured_for = "mgwfbp";
  plan.predicted_seconds = 0.0123;
  plan.compute_seconds = 0.01;
  plan.sum_seconds = 0.004;
  EXPECT_EQ(PlanFromJson(ToJson(plan), "plan.json"), plan);
  EXPECT_EQ(Differences(SamplePlan(), plan), "") << "the buckets themselves are what counts";
}

// The same numbers from another file are no difference.
TEST(ExecutionPlan, KnowsWhatTheCompressorCosts) {
  EXPECT_THAT(ToJson(SamplePlan()), testing::Not(testing::HasSubstr("compress_cost")));
  ExecutionPlan plan = SamplePlan();
  plan.compress_cost = {"topk", {{.density = 0.1, .entries = 10, .seconds = 1e-6}}, "a.json", "12"};
  EXPECT_EQ(PlanFromJson(ToJson(plan), "plan.json"), plan);
  EXPECT_EQ(Differences(SamplePlan(), plan), "compressor's cost passes -> topk by a.json (12)");
  ExecutionPlan other = plan;
  other.compress_cost.file = "b.json";
  EXPECT_EQ(Differences(plan, other), "");
  other.compress_cost.samples[0].seconds = 2e-6;
  EXPECT_EQ(Differences(plan, other),
            "compressor's cost topk by a.json (12) -> topk by b.json (12)");
  EXPECT_EQ(ErrorOf(Edited("\"kernels\"",
                           "\"compress_cost\": {\"compressor\": \"topk\"}, "
                           "\"kernels\"")),
            "plan.json: compress_cost: key 'file' is missing");
}

TEST(ExecutionPlan, NodesAreWrittenWhereTheCollectiveGoesByThem) {
  EXPECT_THAT(ToJson(SamplePlan()), testing::Not(testing::HasSubstr("node_of")));
  ExecutionPlan plan = SamplePlan();
  plan.collective = "hierarchical";
  plan.node_of = {0, 0, 1, 1};
  EXPECT_EQ(PlanFromJson(ToJson(plan), "plan.json"), plan);
  EXPECT_NE(plan, SamplePlan());
  const auto error_of = [](const std::string& nodes) {
    return ErrorOf(Edited("\"isa\"", "\"node_of\": " + nodes + ", \"isa\""));
  };
  const std::string error = "plan.json: node_of: not one node number per rank, counted from 0";
  EXPECT_EQ(error_of("[0, 2]"), error);
  EXPECT_EQ(error_of("[0, -1]"), error);
  EXPECT_EQ(error_of("[0, \"a\"]"), error);
  EXPECT_EQ(error_of("3"), "plan.json: node_of: not a list");
}

TEST(ExecutionPlan, SaysItsSchemaAndRefusesANewerOne) {
  EXPECT_EQ(ErrorOf(Edited("\"schema\": 1", "\"schema\": 2")),
            "plan.json: schema 2, this program reads those up to 1");
  EXPECT_EQ(PlanFromJson(Edited("\"schema\": 1,", ""), "plan.json"), SamplePlan())
      << "an older program's";
}

TEST(ExecutionPlan, WithoutAWordAboutPrecisionItIsFp32) {
  EXPECT_EQ(PlanFromJson(Edited("  \"precision\": \"fp32\",\n", ""), "plan.json"), SamplePlan());
}

TEST(ExecutionPlan, WithoutAWordAboutTheDeviceItIsTheCpu) {
  EXPECT_EQ(PlanFromJson(Edited("  \"device\": \"cpu\",\n", ""), "plan.json"), SamplePlan());
}

// Two GPUs with equal plans may still give different sums: another library version may add in
// another order.  So the plan names the GPU and its libraries.
TEST(ExecutionPlan, NamesTheGpuAndItsLibraries) {
  EXPECT_THAT(ToJson(SamplePlan()), testing::Not(testing::HasSubstr("gpu")));
  ExecutionPlan plan = SamplePlan(), other = SamplePlan();
  plan.device = other.device = "cuda";
  plan.gpu = "NVIDIA H200, CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.19.0";
  other.gpu = "NVIDIA H200, CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.20.0";
  EXPECT_EQ(PlanFromJson(ToJson(plan), "plan.json"), plan);
  EXPECT_EQ(Differences(plan, other), "gpu " + plan.gpu + " -> " + other.gpu);
  EXPECT_EQ(Differences(SamplePlan(), plan), "device cpu -> cuda") << "that says it";
}

TEST(ExecutionPlan, KernelsAreOfADeviceAndAPrecision) {
  ExecutionPlan other = SamplePlan();
  other.threads = 9;
  EXPECT_TRUE(SameKernels(SamplePlan(), other));
  other.device = "cuda";
  EXPECT_FALSE(SameKernels(SamplePlan(), other));
  other = SamplePlan();
  other.precision = "bf16";
  EXPECT_FALSE(SameKernels(SamplePlan(), other));
}

TEST(ExecutionPlan, BadJsonIsNamed) {
  EXPECT_EQ(ErrorOf("{"), "plan.json: not JSON (byte 2)");
  EXPECT_EQ(ErrorOf("[]"), "plan.json: not a JSON object");
  EXPECT_EQ(ErrorOf(Edited("\"isa\"", "\"iso\"")), "plan.json: key 'isa' is missing");
  EXPECT_EQ(ErrorOf(Edited("\"threads\": 2", "\"threads\": 2.5")),
            "plan.json: threads: not an integer");
  EXPECT_EQ(ErrorOf(Edited("\"threads\": 2", "\"threads\": -2")), "plan.json: threads: negative");
  EXPECT_EQ(ErrorOf(Edited("\"ordered\"", "7")), "plan.json: collective: not a string");
  EXPECT_EQ(ErrorOf(Edited("\"sgemm\"", "null")), "plan.json: kernels: ip1: not a string");
  EXPECT_EQ(ErrorOf(Edited("1234", "500")), "plan.json: buckets[1]: an empty range");
  EXPECT_EQ(ErrorOf(Edited("\"isa\"", "\"extra\": 1, \"isa\"")), "plan.json: unknown key 'extra'");
}

TEST(ExecutionPlan, ReadsAFile) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "plan.json";
  std::ofstream(path) << ToJson(SamplePlan());
  EXPECT_EQ(ReadPlan(path), SamplePlan());
  EXPECT_THROW(ReadPlan(folder / "missing.json"), DataError);
}

struct Change {
  std::function<void(ExecutionPlan&)> apply;
  std::string text;
};

TEST(ExecutionPlan, DifferencesAreReadable) {
  EXPECT_EQ(Differences(SamplePlan(), SamplePlan()), "");
  const std::vector<Change> changes = {
      {[](ExecutionPlan& p) { p.device = "cuda"; }, "device cpu -> cuda"},
      {[](ExecutionPlan& p) { p.isa = "avx2"; }, "isa avx512 -> avx2"},
      {[](ExecutionPlan& p) { p.precision = "bf16"; }, "precision fp32 -> bf16"},
      {[](ExecutionPlan& p) { p.threads = 1; }, "threads 2 -> 1"},
      {[](ExecutionPlan& p) { p.workers = 8; }, "workers 4 -> 8"},
      {[](ExecutionPlan& p) { p.collective = "mpi"; }, "collective ordered -> mpi"},
      {[](ExecutionPlan& p) {
         p.node_of = {0, 0, 1, 1};
       },
       "nodes none -> 0 0 1 1"},
      {[](ExecutionPlan& p) { p.chunk_bytes = 1; }, "chunk_bytes 1048576 -> 1"},
      {[](ExecutionPlan& p) { p.buckets.pop_back(); }, "buckets 2 -> 1"},
      {[](ExecutionPlan& p) { p.buckets[1].end = 2000; }, "bucket 1 [500, 1234) -> [500, 2000)"},
      {[](ExecutionPlan& p) { p.kernels["conv1"] = "direct"; },
       "kernel of conv1 onednn:nhwc -> direct"},
      {[](ExecutionPlan& p) { p.kernels.erase("ip1"); }, "kernel of ip1 sgemm -> none"},
      {[](ExecutionPlan& p) { p.kernels["ip2"] = "sgemm"; }, "kernel of ip2 none -> sgemm"}};
  for (const Change& change : changes) {
    ExecutionPlan after = SamplePlan();
    change.apply(after);
    EXPECT_EQ(Differences(SamplePlan(), after), change.text);
  }
}

}  // namespace
}  // namespace dtrain
