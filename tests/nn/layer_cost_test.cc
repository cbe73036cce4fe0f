// Tests the operations that a layer reports, which `dtrain list models`, plans and simulations go by.  The counts are
// those of the layers' comments, by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/layer_run.h"

namespace dtrain {
namespace {

struct CostCase {
  std::string type, keys;
  std::vector<Shape> inputs;
  double forward = 0, backward = 0;
};

TEST(LayerCost, IsTheNumberOfOperations) {
  const Shape image = {2, 6, 4, 5};  // 240 numbers
  const std::vector<CostCase> cases = {
      {"convolution",
       "{outputs: 8, kernel: 3, pad: 1}",
       {image},
       2.0 * 2 * 8 * 20 * 54,
       4.0 * 2 * 8 * 20 * 54},
      {"inner_product", "{outputs: 7}", {image}, 2.0 * 240 * 7, 4.0 * 240 * 7},
      {"embedding", "{vocabulary: 9, outputs: 7}", {{2, 3}}, 6.0 * 7, 6.0 * 7},
      {"pooling",
       "{method: max, kernel: 2, stride: 2}",
       {image},
       2.0 * 6 * 2 * 2 * 4,
       2.0 * 6 * 2 * 2 * 4},
      {"batch_norm", "{}", {image}, 7.0 * 240, 10.0 * 240},
      {"layer_norm", "{}", {image}, 7.0 * 240, 11.0 * 240},
      {"group_norm", "{groups: 3}", {image}, 7.0 * 240, 11.0 * 240},
      {"lrn", "{local_size: 5}", {image}, (2.0 * 5 + 20) * 240, (5.0 + 25) * 240},
      {"lrn", "{local_size: 5}", {{2, 2, 4, 5}}, (2.0 * 3 + 20) * 80, (3.0 + 25) * 80},
      {"dropout", "{}", {image}, 32.0 * 240, 32.0 * 240},
      {"relu", "{}", {image}, 240, 240},
      {"leaky_relu", "{}", {image}, 2.0 * 240, 2.0 * 240},
      {"sigmoid", "{}", {image}, 20.0 * 240, 3.0 * 240},
      {"tanh", "{}", {image}, 20.0 * 240, 3.0 * 240},
      {"silu", "{}", {image}, 21.0 * 240, 25.0 * 240},
      {"gelu", "{}", {image}, 42.0 * 240, 46.0 * 240},
      {"gelu", "{approximate: tanh}", {image}, 25.0 * 240, 32.0 * 240},
      {"eltwise", "{}", {image, image, image}, 2.0 * 240, 2.0 * 240},
      {"eltwise", "{operation: product}", {image, image, image}, 2.0 * 240, 6.0 * 240},
      {"softmax_cross_entropy", "{}", {{2, 5}, {2}}, 20.0 * 10, 20.0 * 10},
      {"binary_cross_entropy", "{}", {{2, 5}, {2, 5}}, 36.0 * 10, 20.0 * 10},
      {"mean_squared_error", "{}", {{2, 5}, {2, 5}}, 3.0 * 10, 3.0 * 10},
      // Three gates of 4 numbers, of 5 + 4 inputs each.
      {"gru",
       "{hidden: 4}",
       {{2, 3, 5}, {2, 3}},
       6.0 * 12 * (2 * 9 + 20),
       12.0 * 12 * (2 * 9 + 20)},
      {"lstm",
       "{hidden: 4}",
       {{2, 3, 5}, {2, 3}},
       6.0 * 16 * (2 * 9 + 20),
       12.0 * 16 * (2 * 9 + 20)},
  };
  for (const CostCase& one : cases) {
    SCOPED_TRACE(one.type + " " + one.keys);
    const auto layer = MadeLayer(one.type, one.keys);
    layer->SetInputClasses(std::vector<int64_t>(one.inputs.size(), 0));
    layer->InferShapes(one.inputs);
    const Cost cost = layer->CostOf(one.inputs);
    EXPECT_EQ(cost.forward_flops, one.forward);
    EXPECT_EQ(cost.backward_flops, one.backward);
  }
}

}  // namespace
}  // namespace dtrain
