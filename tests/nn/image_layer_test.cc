// Convolution and pooling beyond the suite: messages, which kernel is taken, edge values.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "framework/core/error.h"
#include "framework/nn/kernel.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::unique_ptr<Layer> Make(const std::string& type, const std::string& yaml) {
  config::Document document = config::Document::FromText(yaml, "test.yaml");
  config::Reader root = document.root();
  auto layer = LayerRegistry::Get("layer", type).make();
  layer->Configure(root);
  document.Finish();
  return layer;
}

std::string ErrorOf(const std::string& type, const std::string& yaml, const Shape& input) {
  const Shape inputs[] = {input};
  return WhatOf<ConfigError>([&] { Make(type, yaml)->InferShapes(inputs); });
}

TEST(ImageLayer, WindowLargerThanTheImageNamesBoth) {
  EXPECT_EQ(ErrorOf("convolution", "{outputs: 2, kernel: 5, pad: 1}", {8, 3, 2, 9}),
            "a window of [5, 5] does not fit into the input [8, 3, 2, 9] with pad 1");
  EXPECT_EQ(ErrorOf("pooling", "{kernel: 4}", {8, 3, 9, 3}),
            "a window of [4, 4] does not fit into the input [8, 3, 9, 3] with pad 0");
}

TEST(ImageLayer, InputThatIsNoImageIsToldSo) {
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

TEST(ImageLayer, AMaximumHasAtMost225Pixels) {
  EXPECT_EQ(ErrorOf("pooling", "{global: true}", {1, 1, 15, 16}),
            "a window of [15, 16] is too large for a maximum");
  EXPECT_EQ(ErrorOf("pooling", "{global: true}", {1, 1, 15, 15}), "no error");
}

TEST(ImageLayer, SumsTakeEqualShapesAndNormsTakeChannels) {
  const Shape unequal[] = {{2, 3, 4, 4}, {2, 3, 2, 2}};
  try {
    Make("eltwise", "{}")->InferShapes(unequal);
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
  const auto layer = Make("convolution", "{outputs: 16, kernel: 5}");
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
  const auto layer = Make("convolution", yaml);
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
  }
}

// One 2x2 window of one sample and channel; lanes beyond it (channels, for channels_last) hold
// 1000.
struct PoolResult {
  float y;
  std::vector<float> dx;
};

PoolResult PoolWindow(const KernelEntry& entry, const std::vector<float>& window, bool relu) {
  const auto layer = Make("pooling", "{}");
  const int64_t channels = entry.implementation == "channels_last" ? 16 : 1;
  KernelRequest request = RequestFor(layer.get(), {1, channels, 2, 2}, {1, channels, 1, 1});
  request.fused_relu = relu;
  request.device.isa = CpuIsa();
  const KernelOffer offer = *entry.offer(request);
  const int64_t step = offer.inputs[0] == Format::kBatchBlocked ? 16 : channels;
  std::vector<float> x(4 * step, 1000), y(step), dy(step, 1), dx(4 * step, -1);
  for (int64_t i = 0; i < 4; ++i) x[i * step] = window[i];
  const auto kernel = entry.make(request, offer);
  std::vector<uint8_t> saved(kernel->Needs().saved_bytes);
  const Tensor tensors[] = {{x.data(), request.inputs[0], DType::kF32, offer.inputs[0]},
                            {y.data(), request.outputs[0], DType::kF32, offer.outputs[0]},
                            {dy.data(), request.outputs[0], DType::kF32, offer.outputs[0]},
                            {dx.data(), request.inputs[0], DType::kF32, offer.inputs[0]}};
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
      EXPECT_TRUE(std::isnan(PoolWindow(entry, {1, kNan, 2, 3}, relu).y)) << entry.implementation;
      EXPECT_TRUE(std::isnan(PoolWindow(entry, {kNan, 1, 2, 3}, relu).y)) << entry.implementation;
    }
  }
}

}  // namespace
}  // namespace dtrain
