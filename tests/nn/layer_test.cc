// Tests single layers beyond the suite: messages, edge values and statistics.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "framework/core/error.h"
#include "framework/nn/kernel.h"
#include "tests/support/layer_run.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ShapeErrorOf(const std::string& type, const std::vector<Shape>& inputs,
                         const std::string& yaml = "{}") {
  return WhatOf<ShapeError>([&] { MadeLayer(type, yaml)->InferShapes(inputs); });
}

// Runs scores and labels through a kernel that has one result per sample.
std::vector<float> ForwardScores(const std::string& type, std::vector<float> scores,
                                 std::vector<int32_t> labels, const std::string& yaml = "{}") {
  const auto layer = MadeLayer(type, yaml);
  const auto batch = static_cast<int64_t>(labels.size());
  KernelRequest request;
  request.layer = layer.get();
  request.inputs = {{batch, static_cast<int64_t>(scores.size()) / batch}, {batch}};
  request.outputs = layer->InferShapes(request.inputs);
  request.available = {Format::kPlain, Format::kPlain};
  request.mode = Mode::kEvaluate;
  const KernelEntry& entry = KernelRegistry::Of(type, DeviceKind::kCpu).at(0);
  const auto kernel = entry.make(request, *entry.offer(request));
  std::vector<float> result(labels.size());
  const Tensor inputs[] = {{scores.data(), request.inputs[0]},
                           {labels.data(), request.inputs[1], DType::kI32}};
  const Tensor outputs[] = {{result.data(), request.outputs[0]}};
  KernelArgs args;
  args.inputs = inputs;
  args.outputs = outputs;
  args.first_position = 100;
  args.step = 7;
  kernel->Forward(args);
  return result;
}

TEST(Accuracy, FirstOfEqualScoresWinsAndNanLoses) {
  EXPECT_THAT(ForwardScores("accuracy", {2, 2, 1, 3, NAN, 1, NAN, 1, 1, 1}, {0, 1, 0, 0, 1}),
              ElementsAre(1, 1, 0, 0, 0));
}

TEST(Accuracy, TopFiveOfFewerClassesIsAnError) {
  EXPECT_THAT(ShapeErrorOf("accuracy", {{4, 3}, {4}}, "{top_k: 5}"),
              HasSubstr("top_k is 5 with 3 classes"));
}

TEST(SoftmaxCrossEntropy, HugeLogitsDoNotOverflow) {
  const std::vector<float> loss =
      ForwardScores("softmax_cross_entropy", {1e30f, -1e30f, 500, 400}, {0, 1});
  EXPECT_THAT(loss, ElementsAre(0, 100));
}

// The numbers are those of torch.nn.functional.cross_entropy(reduction='none') in double.
TEST(SoftmaxCrossEntropy, SmoothingAndIgnoredLabelsFollowPyTorch) {
  const std::vector<float> loss =
      ForwardScores("softmax_cross_entropy",
                    {0.5f, -1.25f, 2.0f, 0.1f, 1.0f, 0.0f, -3.0f, 0.7f, 0.2f, 0.3f, 0.4f, 0.5f},
                    {2, 1, 0}, "{label_smoothing: 0.1, ignore: 1}");
  EXPECT_THAT(loss, testing::Pointwise(testing::FloatNear(1e-6f),
                                       {0.5108838308752772, 0.0, 1.527535529455163}));
}

TEST(SoftmaxCrossEntropy, AnIgnoredLabelNeedNotBeAClass) {
  EXPECT_EQ(ForwardScores("softmax_cross_entropy", {0, 0, 0, 0}, {99, 1}, "{ignore: 99}")[0], 0);
}

TEST(SoftmaxCrossEntropy, NanAndInfinityReachTheLoss) {
  const std::vector<float> loss =
      ForwardScores("softmax_cross_entropy",
                    {NAN, 1, 1, NAN, std::numeric_limits<float>::infinity(), 0}, {0, 0, 0});
  for (const float value : loss) EXPECT_FALSE(std::isfinite(value)) << value;
}

TEST(SoftmaxCrossEntropy, LabelOutOfRangeNamesTheSample) {
  for (const int32_t bad : {2, -1}) {
    try {
      ForwardScores("softmax_cross_entropy", {0, 0, 0, 0, 0, 0}, {0, 1, bad});
      FAIL() << "label " << bad << " was taken";
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), "label " + std::to_string(bad) +
                                  " at position 102 of the batch (step 7) is outside [0, 2)");
      EXPECT_THAT(error.hint(), HasSubstr("one output for each class"));
    }
  }
}

TEST(Shapes, ErrorsNameBothShapes) {
  EXPECT_THAT(ShapeErrorOf("softmax_cross_entropy", {{4, 10}, {5}}),
              HasSubstr("logits of shape [4, 10] and labels of shape [5] do not fit"));
  EXPECT_THAT(ShapeErrorOf("softmax_cross_entropy", {{4, 10, 2}, {4}}), HasSubstr("[4, 10, 2]"));
  EXPECT_THAT(ShapeErrorOf("accuracy", {{4, 10}, {4, 1}}),
              HasSubstr("scores of shape [4, 10] and labels of shape [4, 1] do not fit"));
}

TEST(Shapes, InnerProductNeedsFeatures) {
  try {
    MadeLayer("inner_product", "{outputs: 3}")->InferShapes(std::vector<Shape>{{4}});
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("an input of shape [4] has no features"));
  }
}

TEST(InnerProduct, ParametersAreNamedAndShapedAsInPyTorch) {
  const auto layer = MadeLayer("inner_product", "{outputs: 3}");
  EXPECT_EQ(layer->InferShapes(std::vector<Shape>{{8, 2, 5}}), (std::vector<Shape>{{8, 3}}));
  const std::vector<ParamSpec> params = layer->Params();
  ASSERT_EQ(params.size(), 2u);
  EXPECT_EQ(params[0].name, "weight");
  EXPECT_EQ(params[0].shape, (Shape{3, 10}));
  EXPECT_EQ(params[0].fan_in, 10);
  EXPECT_EQ(params[0].fan_out, 3);
  EXPECT_EQ(params[1].name, "bias");
  EXPECT_EQ(params[1].shape, (Shape{3}));
}

TEST(Dropout, KeepsTheShareItShouldAndTheMean) {
  constexpr int64_t kCount = 40000;
  const auto layer = MadeLayer("dropout", "{ratio: 0.3}");
  KernelRequest request;
  request.layer = layer.get();
  request.inputs = request.outputs = {{1, kCount}};
  request.available = {Format::kPlain};
  const KernelEntry& entry = KernelRegistry::Of("dropout", DeviceKind::kCpu).at(0);
  const auto kernel = entry.make(request, *entry.offer(request));
  std::vector<float> values(kCount, 1.0f);
  const Tensor tensors[] = {{values.data(), request.inputs[0]}};
  KernelArgs args;
  args.inputs = args.outputs = tensors;
  kernel->Forward(args);
  int64_t kept = 0;
  double sum = 0;
  for (const float v : values) {
    kept += v != 0 ? 1 : 0;
    sum += v;
  }
  EXPECT_NEAR(static_cast<double>(kept) / kCount, 0.7, 5 * std::sqrt(0.3 * 0.7 / kCount));
  EXPECT_NEAR(sum / kCount, 1, 0.02);
}

TEST(KernelName, DividesTheImplementationFromItsChoice) {
  for (const auto& [name, implementation, choice] :
       {std::tuple{"direct", "direct", ""},
        {"cudnn:eng1_k2=3,,eng0", "cudnn", "eng1_k2=3,,eng0"},
        {"cudnn:", "cudnn", ""},
        {"", "", ""}}) {
    EXPECT_EQ(KernelName(name).implementation, implementation);
    EXPECT_EQ(KernelName(name).choice, choice);
  }
}

TEST(KernelRegistry, KeepsEntriesInNameOrderAndOnce) {
  const auto entry = [](const char* name) { return KernelEntry{name, nullptr, nullptr}; };
  EXPECT_TRUE(KernelRegistry::Add("test_only", DeviceKind::kCpu, entry("b")));
  EXPECT_TRUE(KernelRegistry::Add("test_only", DeviceKind::kCpu, entry("a")));
  EXPECT_FALSE(KernelRegistry::Add("test_only", DeviceKind::kCpu, entry("b")));
  ASSERT_EQ(KernelRegistry::Of("test_only", DeviceKind::kCpu).size(), 2u);
  EXPECT_EQ(KernelRegistry::Of("test_only", DeviceKind::kCpu)[0].implementation, "a");
}

}  // namespace
}  // namespace dtrain
