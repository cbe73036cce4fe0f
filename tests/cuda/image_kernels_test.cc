// Tests image kernels on the GPU beyond the suite: edge values, synchronised batch norm over
// several workers, and shapes that cuDNN refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "framework/core/error.h"
#include "tests/cuda/module_under_test.h"
#include "tests/nn/layer_harness.h"
#include "tests/support/message_of.h"
#include "tests/support/thread_sums.h"

namespace dtrain {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Returns the variant in fp32 that has its images in a format; for others than images there is one alone.
KernelVariant VariantOf(const std::string& type, const CaseSetup& setup, bool relu = false,
                        Format format = Format::kPlain) {
  const Form wanted(setup.input_shapes()[0].rank() == 4 ? format : Format::kPlain);
  for (const KernelVariant& variant : VariantsOf(type, setup, Mode::kTrain)) {
    if (variant.fused_relu == relu && variant.available[0] == wanted) return variant;
  }
  throw ConfigError("no kernel");
}

// Pools one window of 2 x 2; the gradient of its output is 1.
KernelResult PoolWindow(const std::vector<double>& window, bool relu) {
  const CaseSetup setup("pooling", {"window", "{}", {{1, 1, 2, 2}}});
  RefArgs args = setup.Forward(Mode::kTrain);
  args.inputs[0].values = window;
  args.output_gradients[0].values = {1};
  return RunKernel(setup, VariantOf("pooling", setup, relu), args);
}

TEST(CudaPooling, OfEqualPixelsTheFirstTakesTheGradient) {
  EXPECT_THAT(PoolWindow({1, 3, 3, 3}, false).input_gradients[0], ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(PoolWindow({-1, -1, -1, -1}, false).input_gradients[0], ElementsAre(1, 0, 0, 0));
}

TEST(CudaPooling, AClosedReluPassesNoGradient) {
  const KernelResult result = PoolWindow({-1, -3, 0, -2}, true);
  EXPECT_THAT(result.outputs[0], ElementsAre(0));
  EXPECT_THAT(result.input_gradients[0], ElementsAre(0, 0, 0, 0));
}

TEST(CudaPooling, ANanIsNeverLost) {
  for (const bool relu : {false, true}) {
    for (size_t place = 0; place < 4; ++place) {
      std::vector<double> window = {4, 1, 9, 2};
      window[place] = kNan;
      const KernelResult result = PoolWindow(window, relu);
      EXPECT_THAT(result.outputs[0], ElementsAre(IsNan()));
      EXPECT_EQ(result.input_gradients[0][place], 1);
    }
  }
}

TEST(CudaConvolution, AFusedReluKeepsANan) {
  const CaseSetup setup("convolution", {"nan", "{outputs: 3, kernel: 1}", {{1, 2, 1, 1}}});
  RefArgs args = setup.Forward(Mode::kTrain);
  args.inputs[0].values = {kNan, 1};
  EXPECT_THAT(RunKernel(setup, VariantOf("convolution", setup, true), args).outputs[0],
              Each(IsNan()));
}

TEST(CudaConvolution, ShapesThatCudnnDoesNotTakeAreNamed) {
  if (ModuleBesideTests()) GTEST_SKIP() << "the real cuDNN may take this one";
  const Shape x{1, 64, 65535, 65535};  // 2^38 elements
  const CaseSetup small("convolution", {"small", "{outputs: 3, kernel: 1}", {{1, 64, 2, 2}}});
  const KernelVariant variant = VariantOf("convolution", small);
  KernelRequest request;
  request.layer = &small.layer();
  request.inputs = {x};
  request.outputs = {{1, 3, 65535, 65535}};
  request.available = {Format::kChannelsLast};
  request.needs_input_gradient = {true};
  request.device = variant.device;
  EXPECT_THAT(
      WhatOf<ShapeError>([&] { variant.entry->make(request, variant.offer); }),
      AllOf(HasSubstr("[1, 64, 65535, 65535]"), HasSubstr("[3, 64, 1, 1]"), HasSubstr("cudnn")));
}

// With mean 1000 and deviation 0.6, sums of squares in float would lose the variance.
TEST(CudaBatchNorm, TheVarianceOfValuesFarFromZero) {
  const CaseSetup setup("batch_norm", {"far", "{}", {{8, 3, 32, 32}}});
  RefArgs args = setup.Forward(Mode::kTrain);
  for (double& value : args.inputs[0].values) value = static_cast<float>(value + 1000);
  args.next_state = args.state;
  setup.reference().Forward(setup.layer(), args);
  for (const Format format : {Format::kPlain, Format::kChannelsLast}) {
    const KernelVariant variant = VariantOf("batch_norm", setup, false, format);
    const KernelResult result = RunKernel(setup, variant, args);
    for (size_t i = 0; i < args.outputs[0].values.size(); i += 7) {
      // The bound allows for the rounding of the mean to float.
      EXPECT_NEAR(result.outputs[0][i], args.outputs[0].values[i], 1e-4);
    }
  }
}

void ExpectNear(const std::vector<float>& got, const double* want, double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

// Runs each worker in a thread with its own share of the batch.
std::vector<KernelResult> RunShares(const CaseSetup& setup, const RefArgs& args,
                                    const std::vector<int64_t>& shares, bool relu, Format format) {
  ThreadSums sums(static_cast<int>(shares.size()));
  std::vector<KernelResult> results(shares.size());
  std::vector<std::thread> running;
  int64_t first = 0;
  for (size_t w = 0; w < shares.size(); ++w) {
    running.emplace_back([&, w, first] {
      OneOfThreads mine(sums, static_cast<int>(w));
      results[w] = RunKernel(setup, VariantOf("batch_norm", setup, relu, format), args,
                             {.first_row = first, .rows = shares[w], .worker_sums = &mine});
    });
    first += shares[w];
  }
  for (std::thread& thread : running) thread.join();
  return results;
}

void ExpectAsWhole(const Shape& shape, const std::vector<int64_t>& shares, bool relu,
                   Format format) {
  const CaseSetup setup("batch_norm", {"sync", "{sync: true}", {shape}});
  RefArgs args = setup.Forward(Mode::kTrain);
  if (relu) setup.FuseRelu(args, 1e-4);
  setup.Backward(args);
  const std::vector<KernelResult> results = RunShares(setup, args, shares, relu, format);
  std::vector<double> weight(args.params[0].values.size()), bias(weight.size());
  int64_t at = 0;
  for (size_t w = 0; w < shares.size(); ++w) {
    const KernelResult& result = results[w];
    ExpectNear(result.outputs[0], args.outputs[0].values.data() + at, 2e-6);
    ExpectNear(result.input_gradients[0], args.input_gradients[0].values.data() + at, 2e-6);
    at += shares[w] * shape.CountFrom(1);
    for (size_t c = 0; c < weight.size(); ++c) {
      weight[c] += result.param_gradients[0][c];
      bias[c] += result.param_gradients[1][c];
    }
    EXPECT_EQ(result.state, results[0].state) << "all workers have the same running statistics";
    ExpectNear(result.state[0], args.next_state[0].values.data(), 1e-6);
    ExpectNear(result.state[1], args.next_state[1].values.data(), 1e-6);
  }
  for (size_t c = 0; c < weight.size(); ++c) {
    EXPECT_NEAR(weight[c], args.param_gradients[0].values[c], 2e-5);
    EXPECT_NEAR(bias[c], args.param_gradients[1].values[c], 2e-5);
  }
}

TEST(CudaBatchNorm, SharesTogetherDoWhatTheWholeBatchDoes) {
  for (const bool relu : {false, true}) {
    for (const Format format : {Format::kPlain, Format::kChannelsLast}) {
      ExpectAsWhole({11, 3, 6, 5}, {6, 5}, relu, format);
      ExpectAsWhole({11, 8, 4, 6}, {6, 5}, relu, format);  // is read in packs
    }
    ExpectAsWhole({11, 20}, {4, 4, 3}, relu, Format::kPlain);
    ExpectAsWhole({11, 5, 1, 1}, {1, 10}, relu, Format::kPlain);
  }
}

}  // namespace
}  // namespace dtrain
