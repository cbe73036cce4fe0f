// Tests what the layer suite cannot: the errors of normalisations and of losses that are a mean
// over elements, and logits far from 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/layer_run.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kLosses[] = {"mean_squared_error", "binary_cross_entropy"};

std::string Refusal(const std::string& type, const std::string& keys,
                    const std::vector<Shape>& shapes, const std::vector<int64_t>& classes) {
  return MessageOf<Error>([&] { LayerRun(type, keys, shapes, classes); });
}

TEST(ElementLoss, RefusesTargetsThatDoNotFit) {
  for (const char* type : kLosses) {
    EXPECT_THAT(Refusal(type, "{}", {{1, 3}, {1, 4}}, {0, 0}),
                HasSubstr("scores of shape [1, 3] and a target of shape [1, 4] do not fit"));
    EXPECT_THAT(Refusal(type, "{}", {{1, 3}, {1}}, {0, 0}),
                HasSubstr("fit only where the target is of classes"));
    EXPECT_THAT(Refusal(type, "{}", {{1, 3}, {1}}, {0, 4}),
                HasSubstr("the labels are of 4 classes, the scores [1, 3] of 3"));
  }
  EXPECT_THAT(Refusal("binary_cross_entropy", "{}", {{1, 1}, {1}}, {0, 10}),
              HasSubstr("the labels are of 10 classes, the scores [1, 1] of 1"));
  LayerRun("mean_squared_error", "{}", {{1, 1}, {1}}, {0, 10});  // class labels serve as numbers
}

TEST(ElementLoss, ALabelThatIsNoClassIsNamed) {
  for (const char* type : kLosses) {
    for (const int32_t label : {-1, 10}) {
      LayerRun run(type, "{}", {{3, 10}, {3}}, {0, 10});
      int32_t* const labels = run.inputs[1].tensor.i32();
      labels[0] = labels[2] = 9;
      labels[1] = label;
      EXPECT_THAT(
          MessageOf<Error>([&] { run.Forward(); }),
          AllOf(HasSubstr("target " + std::to_string(label) + " at position 1 of the batch"),
                HasSubstr("is outside [0, 9]")));
    }
  }
}

TEST(ElementLoss, WhatIsNoProbabilityIsNamed) {
  for (const float target : {-0.5f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    LayerRun run("binary_cross_entropy", "{}", {{3, 2}, {3, 2}}, {0, 0});
    run.inputs[1].values[5] = target;
    EXPECT_THAT(MessageOf<Error>([&] { run.Forward(); }),
                AllOf(HasSubstr("at position 2 of the batch"), HasSubstr("is outside [0, 1]")));
  }
}

TEST(ElementLoss, LargeLogitsGiveFiniteLosses) {
  LayerRun run("binary_cross_entropy", "{}", {{4, 1}, {4, 1}}, {0, 0});
  run.inputs[0].values = {1e4f, -1e4f, 1e4f, -1e4f};
  run.inputs[0].tensor.data = run.inputs[0].values.data();
  run.inputs[1].values = {1, 0, 0, 1};
  run.inputs[1].tensor.data = run.inputs[1].values.data();
  run.Forward();
  run.Backward();
  EXPECT_EQ(run.outputs[0].values, (std::vector<float>{0, 0, 1e4f, 1e4f}));
  EXPECT_EQ(run.input_gradients[0].values, (std::vector<float>{0, 0, 1, -1}));
}

TEST(ElementLoss, ANanScoreShows) {
  for (const char* type : kLosses) {
    LayerRun run(type, "{}", {{2, 3}, {2, 3}}, {0, 0});
    run.inputs[0].values[4] = std::numeric_limits<float>::quiet_NaN();
    run.Forward();
    EXPECT_TRUE(std::isfinite(run.outputs[0].values[0])) << type;
    EXPECT_TRUE(std::isnan(run.outputs[0].values[1])) << type;
  }
}

TEST(Normalisations, RefuseShapesThatTheyCannotCut) {
  EXPECT_THAT(
      Refusal("group_norm", "{groups: 3}", {{1, 8, 2, 2}}, {0}),
      HasSubstr("the 8 channels of the input [1, 8, 2, 2] cannot be divided into 3 groups"));
  EXPECT_THAT(Refusal("group_norm", "{groups: 8}", {{1, 8}}, {0}),
              HasSubstr("leaves one number to normalise at a time"));
  EXPECT_THAT(Refusal("layer_norm", "{axes: 0}", {{1, 8}}, {0}), HasSubstr("axes must be >= 1"));
  EXPECT_THAT(Refusal("layer_norm", "{axes: 2}", {{1, 8}}, {0}),
              HasSubstr("the last 2 axes of an input of shape [1, 8] are not those of a sample"));
  EXPECT_THAT(Refusal("lrn", "{local_size: 4}", {{1, 8, 2, 2}}, {0}),
              HasSubstr("local_size 4 has no channel in its middle"));
  EXPECT_THAT(Refusal("lrn", "{}", {{8}}, {0}), HasSubstr("has no channels to normalise"));
}

// The weights have the shape of the last two axes, here [5, 4]: an input in which these axes have
// other lengths does not fit them.
TEST(Normalisations, RefuseAnAxisThatChangesItsLength) {
  LayerRun run("layer_norm", "{axes: 2}", {{2, 5, 4}}, {0});
  const std::vector<Shape> shorter = {{2, 3, 4}};
  EXPECT_THAT(MessageOf<Error>([&] { run.layer().InferShapes(shorter); }),
              HasSubstr("weights of shape [5, 4] do not fit the input [2, 3, 4]"));
  LayerRun free("layer_norm", "{axes: 2, affine: false}", {{2, 5, 4}}, {0});
  EXPECT_EQ(free.layer().InferShapes(shorter)[0], shorter[0]);
}

}  // namespace
}  // namespace dtrain
