// Tests convolution and pooling beyond the suite: messages, the choice of kernels, and edge values.
#include <gmock/gmock.h>

#include <cmath>

#include "framework/core/error.h"
#include "framework/nn/kernel.h"
#include "tests/support/layer_run.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const std::string& type, const std::string& yaml, const Shape& input) {
  const Shape inputs[] = {input};
  return WhatOf<ConfigError>([&] { MadeLayer(type, yaml)->InferShapes(inputs); });
}

TEST(ImageLayer, WindowLargerThanTheImageNamesBoth) {
  EXPECT_EQ(ErrorOf("convolution", "{outputs: 2, kernel: 5, pad: 1}", {8, 3, 2, 9}),
            "a window of [5, 5] does not fit into the input [8, 3, 2, 9] with pad 1");
  EXPECT_EQ(ErrorOf("pooling", "{kernel: 4}", {8, 3, 9, 3}),
            "a window of [4, 4] does not fit into the input [8, 3, 9, 3] with pad 0");
}

TEST(ImageLayer, InputThatIsNoImageIsReported) {
  const std::string message =
      "an input of shape [8, 10] is no image for a window of [3, 3]; it takes [N, C, H, W]";
  EXPECT_EQ(ErrorOf("convolution", "{outputs: 2, kernel: 3}", {8, 10}), message);
  EXPECT_EQ(ErrorOf("pooling", "{kernel: 3}", {8, 10}), message);
}

TEST(ImageLayer, PoolingPadsAtMostHalfAWindow) {
  EXPECT_THAT(ErrorOf("pooling", "{kernel: 3, pad: 2}", {1, 1, 8, 8}),
              HasSubstr("pad 2 is more than half of kernel 3"));
}

TEST(ImageLayer, GlobalPoolingHasNoWindowOfItsOwn) {
  EXPECT_THAT(ErrorOf("pooling", "{global: true, kernel: 3, pad: 1}", {1, 1, 8, 8}),
              testing::AllOf(HasSubstr("kernel has no meaning beside global: true"),
                             HasSubstr("pad has no meaning beside global: true")));
}

TEST(ImageLayer, AMaximumCountsItsPixelsIn32Bits) {
  EXPECT_EQ(ErrorOf("pooling", "{global: true}", {1, 1, 65536, 32768}),
            "a window of [65536, 32768] is too large for a maximum");
  EXPECT_EQ(ErrorOf("pooling", "{global: true}", {1, 1, 65535, 32768}), "no error");
  EXPECT_EQ(ErrorOf("pooling", "{method: average, global: true}", {1, 1, 65536, 32768}),
            "no error");
}

TEST(ImageLayer, SidesApartAreNamedApart) {
  EXPECT_EQ(ErrorOf("convolution", "{outputs: 2, kernel: [5, 3], pad: [0, 1]}", {8, 3, 4, 9}),
            "a window of [5, 3] does not fit into the input [8, 3, 4, 9] with pad [0, 1]");
  EXPECT_EQ(ErrorOf("convolution", "{outputs: 2, kernel: 3, dilation: [1, 4]}", {8, 3, 8, 8}),
            "a window of [3, 3] with dilation [1, 4] does not fit into the input [8, 3, 8, 8] with "
            "pad 0");
  EXPECT_EQ(ErrorOf("pooling", "{kernel: [2, 4]}", {8, 3, 9, 3}),
            "a window of [2, 4] does not fit into the input [8, 3, 9, 3] with pad 0");
  EXPECT_THAT(ErrorOf("pooling", "{kernel: [2, 4], pad: [2, 2]}", {1, 1, 8, 8}),
              HasSubstr("pad 2 is more than half of kernel [2, 4]"));
}

TEST(ImageLayer, OneNumberOrTwo) {
  EXPECT_THAT(
      ErrorOf("convolution", "{outputs: 2, kernel: [1, 2, 3]}", {1, 1, 8, 8}),
      testing::AllOf(HasSubstr("kernel takes one number or two, not 3"), HasSubstr("1 error;")));
  EXPECT_THAT(ErrorOf("convolution", "{outputs: 2, kernel: []}", {1, 1, 8, 8}),
              HasSubstr("kernel takes one number or two, not 0"));
  EXPECT_THAT(ErrorOf("convolution", "{outputs: 2, kernel: 3, stride: [1, 0]}", {1, 1, 8, 8}),
              testing::AllOf(HasSubstr("stride[1] must be >= 1"), HasSubstr("1 error;")));
  EXPECT_THAT(ErrorOf("convolution", "{outputs: 2, kernel: 3, pad: 40000}", {1, 1, 8, 8}),
              HasSubstr("pad must be >= 0 and <= 32767, found 40000"));
}

TEST(ImageLayer, GroupsDivideBothSides) {
  EXPECT_THAT(ErrorOf("convolution", "{outputs: 8, kernel: 3, groups: 3}", {1, 6, 8, 8}),
              HasSubstr("outputs 8 cannot be divided into groups 3 evenly"));
  EXPECT_EQ(ErrorOf("convolution", "{outputs: 8, kernel: 3, groups: 4}", {1, 6, 8, 8}),
            "the 6 channels of the input [1, 6, 8, 8] cannot be divided into 4 groups");
}

TEST(ImageLayer, AdaptivePoolingHasNoWindowOfItsOwn) {
  EXPECT_THAT(ErrorOf("pooling", "{adaptive: 2, kernel: 3, stride: 1}", {1, 1, 8, 8}),
              testing::AllOf(HasSubstr("kernel has no meaning beside adaptive"),
                             HasSubstr("stride has no meaning beside adaptive")));
  EXPECT_THAT(ErrorOf("pooling", "{adaptive: 2, global: true}", {1, 1, 8, 8}),
              HasSubstr("adaptive has no meaning beside global: true"));
  EXPECT_THAT(ErrorOf("pooling", "{adaptive: [0, 2]}", {1, 1, 8, 8}),
              HasSubstr("adaptive [0, 2] has a side without pixels"));
  EXPECT_EQ(ErrorOf("pooling", "{adaptive: 2}", {4, 10}),
            "an input of shape [4, 10] is no image; it takes [N, C, H, W]");
}

// Tensors too large for any machine still have shapes, computed without overflow.
TEST(ImageLayer, LargestNumbersHaveShapes) {
  constexpr int64_t kMost = 2147483647;
  const Shape inputs[] = {{1, kMost, kMost, kMost}};
  const auto layer = MadeLayer("convolution",
                               "{outputs: 2147483647, kernel: 32767, dilation: 32767, pad: 32767, "
                               "groups: 2147483647}");
  const Shape y = layer->InferShapes(inputs)[0];
  EXPECT_EQ(y[2], kMost + 2 * 32767 - 32766 * int64_t{32767});
  EXPECT_EQ(layer->Params()[0].shape, (Shape{kMost, 1, 32767, 32767}));
  EXPECT_EQ(MadeLayer("pooling", "{method: average, adaptive: 2147483647}")->InferShapes(inputs)[0],
            (Shape{1, kMost, kMost, kMost}));
}

TEST(ImageLayer, GroupsAndDilationInCostAndFans) {
  const Shape inputs[] = {{4, 6, 14, 12}};
  const auto layer = MadeLayer(
      "convolution", "{outputs: 8, kernel: [3, 2], dilation: [2, 1], groups: 2, pad: [2, 0]}");
  EXPECT_EQ(layer->InferShapes(inputs)[0], (Shape{4, 8, 14, 11}));
  EXPECT_EQ(layer->CostOf(inputs).forward_flops, 2.0 * 4 * 8 * 14 * 11 * 3 * 3 * 2);
  const ParamSpec weight = layer->Params()[0];
  EXPECT_EQ(weight.shape, (Shape{8, 3, 3, 2}));
  EXPECT_EQ(weight.fan_in, 3 * 3 * 2);
  EXPECT_EQ(weight.fan_out, 8 * 3 * 2);
}

TEST(ImageLayer, SumsTakeEqualShapesAndNormsTakeChannels) {
  const Shape unequal[] = {{2, 3, 4, 4}, {2, 3, 2, 2}};
  try {
    MadeLayer("eltwise", "{}")->InferShapes(unequal);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "inputs of shapes [2, 3, 4, 4] and [2, 3, 2, 2] cannot be added");
  }
  EXPECT_EQ(ErrorOf("batch_norm", "{}", {4, 5, 6}),
            "an input of shape [4, 5, 6] has no channels to normalise; it takes [N, C, H, W] or "
            "[N, C]");
}

TEST(ImageLayer, ConvolutionCost) {
  const Shape inputs[] = {{64, 6, 14, 14}};
  const auto layer = MadeLayer("convolution", "{outputs: 16, kernel: 5}");
  layer->InferShapes(inputs);
  EXPECT_EQ(layer->CostOf(inputs).forward_flops, 2.0 * 64 * 16 * 100 * 6 * 25);
  EXPECT_EQ(layer->CostOf(inputs).backward_flops, 4.0 * 64 * 16 * 100 * 6 * 25);
}

KernelRequest RequestFor(const Layer* layer, const Shape& input, const Shape& output) {
  KernelRequest request;
  request.layer = layer;
  request.inputs = {input};
  request.outputs = {output};
  request.available = {Format::kPlain};
  request.needs_input_gradient = {true};
  return request;
}

std::string BestFor(const std::string& yaml, const Shape& input) {
  const auto layer = MadeLayer("convolution", yaml);
  const Shape inputs[] = {input};
  const KernelRequest request = RequestFor(layer.get(), input, layer->InferShapes(inputs)[0]);
  std::string best;
  int preference = -1000;
  for (const KernelEntry& entry : KernelRegistry::Of("convolution", DeviceKind::kCpu)) {
    const auto offer = entry.offer(request);
    if (!offer || offer->preference <= preference) continue;
    best = entry.implementation;
    preference = offer->preference;
  }
  return best;
}

TEST(ImageLayer, ConvolutionKernelIsChosenByChannelsNotByBatch) {
  for (const int64_t batch : {1, 64}) {
    EXPECT_EQ(BestFor("{outputs: 6, kernel: 5, pad: 2}", {batch, 1, 28, 28}), "batch_blocked");
    EXPECT_EQ(BestFor("{outputs: 16, kernel: 5}", {batch, 6, 14, 14}), "batch_blocked");
    EXPECT_EQ(BestFor("{outputs: 50, kernel: 5}", {batch, 20, 12, 12}), "batch_blocked");
    EXPECT_EQ(BestFor("{outputs: 64, kernel: 3, pad: 1}", {batch, 64, 32, 32}), "winograd");
    EXPECT_EQ(BestFor("{outputs: 64, kernel: 3, pad: 1}", {batch, 3, 32, 32}), "onednn");
    EXPECT_EQ(BestFor("{outputs: 6, kernel: 5, stride: 2}", {batch, 1, 28, 28}), "onednn");
    for (const char* keys :
         {"groups: 2", "dilation: 2", "stride: [1, 2]", "pad: [1, 0]", "kernel: [3, 5]"}) {
      const std::string kernel = std::string(keys).starts_with("kernel") ? "" : ", kernel: 3";
      const std::string yaml = "{outputs: 64, " + std::string(keys) + kernel + "}";
      EXPECT_EQ(BestFor(yaml, {batch, 64, 32, 32}), "onednn") << keys;
    }
  }
}

// One 2x2 window of one sample and channel.  The other lanes (channels, for channels_last) hold
// 1000.
struct PoolResult {
  float y;
  std::vector<float> dx;
};

PoolResult PoolWindow(const KernelEntry& entry, const std::vector<float>& window, bool relu) {
  const auto layer = MadeLayer("pooling", "{}");
  const int64_t channels = entry.implementation == "channels_last" ? 16 : 1;
  const Shape image[] = {{1, channels, 2, 2}};
  KernelRequest request = RequestFor(layer.get(), image[0], layer->InferShapes(image)[0]);
  request.fused_relu = relu;
  request.device.isa = CpuIsa();
  const KernelOffer offer = *entry.offer(request);
  const int64_t step = offer.inputs[0] == Format::kBatchBlocked ? 16 : channels;
  std::vector<float> x(4 * step, 1000), y(step), dy(step, 1), dx(4 * step, -1);
  for (int64_t i = 0; i < 4; ++i) x[i * step] = window[i];
  const auto kernel = entry.make(request, offer);
  std::vector<uint8_t> saved(kernel->Needs().saved_bytes);
  const Tensor tensors[] = {{x.data(), request.inputs[0], DType::kF32, offer.inputs[0].format},
                            {y.data(), request.outputs[0], DType::kF32, offer.outputs[0].format},
                            {dy.data(), request.outputs[0], DType::kF32, offer.outputs[0].format},
                            {dx.data(), request.inputs[0], DType::kF32, offer.inputs[0].format}};
  KernelArgs args;
  args.inputs = {tensors, 1};
  args.outputs = {tensors + 1, 1};
  args.output_gradients = {tensors + 2, 1};
  args.input_gradients = {tensors + 3, 1};
  args.saved = saved.data();
  kernel->Forward(args);
  kernel->Backward(args);
  return {y[0], {dx[0], dx[step], dx[2 * step], dx[3 * step]}};
}

TEST(ImageLayer, MaxPoolingGivesTheGradientToTheFirstOfEqualPixels) {
  for (const KernelEntry& entry : KernelRegistry::Of("pooling", DeviceKind::kCpu)) {
    EXPECT_THAT(PoolWindow(entry, {1, 5, 5, 5}, false).dx, ElementsAre(0, 1, 0, 0));
    EXPECT_THAT(PoolWindow(entry, {-3, -3, -3, -3}, false).dx, ElementsAre(1, 0, 0, 0));
  }
}

TEST(ImageLayer, MaxPoolingWithReluClosesAtZero) {
  for (const KernelEntry& entry : KernelRegistry::Of("pooling", DeviceKind::kCpu)) {
    const PoolResult closed = PoolWindow(entry, {-1, -2, 0, -4}, true);
    EXPECT_EQ(closed.y, 0);
    EXPECT_THAT(closed.dx, ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(PoolWindow(entry, {-1, -2, 3, -4}, true).dx, ElementsAre(0, 0, 1, 0));
  }
}

TEST(ImageLayer, MaxPoolingLosesNoNan) {
  for (const KernelEntry& entry : KernelRegistry::Of("pooling", DeviceKind::kCpu)) {
    for (const bool relu : {false, true}) {
      EXPECT_TRUE(std::isnan(PoolWindow(entry, {1, NAN, 2, 3}, relu).y)) << entry.implementation;
      EXPECT_TRUE(std::isnan(PoolWindow(entry, {NAN, 1, 2, 3}, relu).y)) << entry.implementation;
    }
  }
}

}  // namespace
}  // namespace dtrain
