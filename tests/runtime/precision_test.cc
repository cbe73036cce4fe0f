// Tests `precision: bf16`: it is refused on machines without support, and a plan with kernels of another precision is
// not used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "framework/core/error.h"
#include "framework/core/isa.h"
#include "framework/nn/kernel.h"
#include "framework/setup/run_setup.h"
#include "framework/train/start_point.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

TEST(PrecisionDeathTest, ACappedInstructionSetHasNoBf16) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto ask = [] {
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    try {
      PrecisionOf("bf16", DeviceKind::kCpu);
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "%s | %s\n", error.what(), error.hint().c_str());
      std::exit(2);
    }
    std::exit(0);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(2),
              "precision bf16 needs AMX: (the instruction set is limited to "
              "|the CPU has no AMX|this is no).* \\| precision: fp32");
}

TEST(Precision, WhatIsMissingIsNamed) {
  EXPECT_EQ(AmxAvailable(), WhyNoAmx().empty());
  EXPECT_EQ(PrecisionOf("fp32", DeviceKind::kCpu), Precision::kFp32);
  if (AmxAvailable()) {
    EXPECT_EQ(PrecisionOf("bf16", DeviceKind::kCpu), Precision::kBf16);
    return;
  }
  EXPECT_THROW(PrecisionOf("bf16", DeviceKind::kCpu), ConfigError);
}

TEST(Precision, IsOfTheDevice) {
  EXPECT_EQ(PrecisionOf("tf32", DeviceKind::kCuda), Precision::kTf32);
  EXPECT_EQ(WhatOf<ConfigError>([] { PrecisionOf("tf32", DeviceKind::kCpu); }),
            "precision tf32 needs a GPU: the CPU has no such products");
  EXPECT_EQ(PrecisionOf("fp16", DeviceKind::kCuda), Precision::kFp16);
  EXPECT_EQ(WhatOf<ConfigError>([] { PrecisionOf("fp16", DeviceKind::kCpu); }),
            "precision fp16 needs a GPU: the CPU has no such products");
  EXPECT_EQ(PrecisionOf("bf16", DeviceKind::kCuda), Precision::kBf16) << "with or without AMX";
}

// The scale of the loss is known to one GPU only.
TEST(Precision, ALossIsScaledForOneWorkerWhoseGradientsStayOnItsGpu) {
  const auto read = [](const std::string& more) {
    config::Document document = config::Document::FromText(
        "model: lenet5\ndata: digits\nbatch: 4\ndevice: auto\nprecision: fp16\n" + more,
        DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
    return ReadRunConfig(document);
  };
  EXPECT_EQ(read("").precision, "fp16");
  for (const auto& [more, why] : {std::pair{"cluster: {workers: 2}\n", "workers is 2"},
                                  {"compress: {name: topk}\n", "compress.name sends"},
                                  {"strategy: {name: ps_asp}\n", "ps_asp exchanges no gradients"},
                                  {"accumulate: 2\n", "accumulate adds"},
                                  {"cluster: {slowdown: [2]}\n", "cluster.slowdown delays"},
                                  {"cluster: {step_seconds: 0.1}\n", "cluster.step_seconds delays"},
                                  {"gradients: {every: 5}\n", "reads them on the host"}}) {
    EXPECT_THAT(WhatOf<ConfigError>([&, &more = more] { read(more); }), HasSubstr(why)) << more;
  }
}

TEST(Precision, TheDeviceHasThePlans) {
  EXPECT_EQ(DeviceOf({.precision = "fp32"}).precision, Precision::kFp32);
  if (!AmxAvailable()) {
    EXPECT_THROW(DeviceOf({.precision = "bf16"}), ConfigError);
  } else {
    EXPECT_EQ(DeviceOf({.precision = "bf16"}).precision, Precision::kBf16);
  }
}

// The AMX emulation is only for the tests of its arithmetic (tests/nn/emulated_amx.cc).
TEST(Precision, NoRunIsOfferedTheEmulation) {
  for (const KernelEntry& entry : KernelRegistry::Of("convolution", DeviceKind::kCpu)) {
    EXPECT_EQ(entry.implementation.find("emulated"), std::string::npos) << entry.implementation;
  }
  EXPECT_GE(KernelRegistry::Of("convolution", DeviceKind::kCpu).size(), 4u);
}

ExecutionPlan PlanAfter(const std::string& before, const std::string& now) {
  StartPoint start;
  start.plan = ExecutionPlan{.precision = before, .kernels = {{"conv1", "amx"}}};
  ExecutionPlan plan = {.precision = now};
  config::Document defaults = config::Document::Empty();
  FollowPlanOf(start, ReadGhostConfig(defaults), plan);
  return plan;
}

TEST(Precision, AResumedRunOfAnotherPrecisionChoosesItsKernelsAndSaysSo) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(PlanAfter("bf16", "bf16").kernels.at("conv1"), "amx");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(PlanAfter("bf16", "fp32").kernels.empty());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("not bit-equal"), HasSubstr("precision bf16 -> fp32")));
}

TEST(Precision, APlanSaysWhetherAnythingIsComputedInBf16) {
  EXPECT_TRUE(ComputesInBf16({.kernels = {{"conv1", "onednn"}, {"conv2", "amx"}}}));
  EXPECT_FALSE(ComputesInBf16({.precision = "bf16", .kernels = {{"conv1", "blocked"}}}));
  const std::map<std::string, std::string> gpu = {{"conv1", "cudnn"}};
  EXPECT_TRUE(ComputesInBf16({.device = "cuda", .precision = "bf16", .kernels = gpu}));
  EXPECT_FALSE(ComputesInBf16({.device = "cuda", .precision = "tf32", .kernels = gpu}));
}

// An older version ran batch norm with oneDNN.
TEST(OlderPlan, KernelsThatAreGoneAreChosenAfreshWithAWarning) {
  const Graph graph = Graph::FromText(
      "name: m\nsample: [1, 4, 4]\nlayers:\n"
      "  - {name: bn1, type: batch_norm}\n"
      "  - {name: fc, type: inner_product, outputs: 2}\n"
      "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n",
      "m.yaml", {});
  ExecutionPlan plan = {.kernels = {{"bn1", "onednn"}, {"fc", "gemm:as it chose"}}};
  ::testing::internal::CaptureStderr();
  ForgetUnknownKernels(graph, plan);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("its kernel 'onednn' of layer 'bn1' is gone"));
  EXPECT_EQ(plan.kernels, (std::map<std::string, std::string>{{"fc", "gemm:as it chose"}}));
}

}  // namespace
}  // namespace dtrain
