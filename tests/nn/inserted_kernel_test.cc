// Tests which inserted kernels a net needs from a device, and the errors if one is missing.
#include "framework/nn/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/nn/net.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using testing::ElementsAre;

const Device kCuda = {DeviceKind::kCuda, 1, Isa::kBaseline};

std::vector<Tensor> Views(std::vector<std::vector<float>>& values) {
  std::vector<Tensor> views;
  for (auto& v : values) views.push_back({v.data(), {static_cast<int64_t>(v.size())}});
  return views;
}

// Runs an inserted CPU kernel on `inputs`, which changes `outputs`.
void Insert(const std::string& name, std::vector<std::vector<float>> inputs,
            const std::vector<Tensor>& outputs) {
  const std::vector<Tensor> views = Views(inputs);
  KernelArgs args;
  args.inputs = views;
  args.outputs = outputs;
  InsertedKernels::Make(name, Device{}, "a test")->Forward(args);
}

TEST(InsertedKernels, AddLeavesOutWhatNobodyWants) {
  std::vector<std::vector<float>> sums = {{1, 2}, {3, 4}};
  std::vector<Tensor> outputs = Views(sums);
  outputs[0].data = nullptr;
  Insert("add", {{10, 20}, {30, 40}}, outputs);
  EXPECT_THAT(sums, ElementsAre(ElementsAre(1, 2), ElementsAre(33, 44)));
}

// In float the ones would be lost beside 2^24, and 1e30 and -1e30 cancel only in this order.
TEST(InsertedKernels, SumAddsInDoubleInTheOrderOfInputs) {
  double sum = -1;
  Insert("sum", {{16777216, 1}, {1, 1}}, {{&sum, {1}, DType::kF64}});
  EXPECT_EQ(sum, 16777219);
  Insert("sum", {{1e30f, 1}, {-1e30f}}, {{&sum, {1}, DType::kF64}});
  EXPECT_EQ(sum, 0);
  Insert("sum", {{1e30f, -1e30f}, {1}}, {{&sum, {1}, DType::kF64}});
  EXPECT_EQ(sum, 1);
}

TEST(InsertedKernels, ZeroWritesEverything) {
  std::vector<std::vector<float>> values = {{1, 2, 3}, {4}};
  Insert("zero", {}, Views(values));
  EXPECT_THAT(values, ElementsAre(ElementsAre(0, 0, 0), ElementsAre(0)));
}

TEST(InsertedKernels, ANameIsTakenOnce) {
  const auto make = [](const Device&) { return std::unique_ptr<Kernel>(); };
  EXPECT_FALSE(InsertedKernels::Add("add", DeviceKind::kCpu, make));
}

TEST(InsertedKernels, SaysWhatADeviceLacks) {
  EXPECT_EQ(WhatOf<ConfigError>([] { InsertedKernels::Make("reorder", kCuda, "layer 'conv1'"); }),
            "layer 'conv1': device 'cuda' has no kernel 'reorder'");
  EXPECT_EQ(WhatOf<ConfigError>([] { InsertedKernels::Make("turn", Device{}, "layer 'conv1'"); }),
            "layer 'conv1': device 'cpu' has no kernel 'turn'");
}

constexpr char kModel[] =
    "name: m\nlayers:\n  - {name: fc, type: inner_product, outputs: 3}\n"
    "  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n";

TEST(Net, SaysWhichLayerADeviceCannotRun) {
  const Graph graph =
      Graph::FromText(kModel, "m.yaml", {{"data", DType::kF32, {4}}, {"label", DType::kI32, {}}});
  Net net(graph, kCuda);
  EXPECT_EQ(WhatOf<ConfigError>([&] { net.Prepare(Mode::kTrain, 4); }),
            "layer 'fc' (inner_product): no kernel runs it on device 'cuda'");
}

// The device must also write the zero gradients of a share without samples.
TEST(Net, ADeviceThatCannotWriteZerosIsNamed) {
  const Graph graph =
      Graph::FromText(kModel, "m.yaml", {{"data", DType::kF32, {4}}, {"label", DType::kI32, {}}});
  Net net(graph, kCuda);
  std::vector<float> arena(static_cast<size_t>(graph.weights().size()));
  EXPECT_EQ(WhatOf<ConfigError>(
                [&] { net.Step(arena.data(), arena.data(), nullptr, NetInput{}, nullptr); }),
            "model 'm': device 'cuda' has no kernel 'zero'");
}

// A kernel of one device is not offered for another device.
TEST(KernelRegistry, KeepsDevicesApart) {
  EXPECT_FALSE(KernelRegistry::Of("relu", DeviceKind::kCpu).empty());
  EXPECT_TRUE(KernelRegistry::Of("relu", DeviceKind::kCuda).empty());
}

}  // namespace
}  // namespace dtrain
