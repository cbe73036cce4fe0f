// Implements elementwise sum, product and maximum in plain loops, as the reference for the tests.
#include "framework/nn/layer_case.h"
#include "layers/eltwise/eltwise.h"

namespace dtrain {
namespace {

class EltwiseReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    auto& y = args.outputs[0].values;
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = args.inputs[0].values[i];
      for (size_t k = 1; k < args.inputs.size(); ++k) {
        const double x = args.inputs[k].values[i];
        switch (static_cast<const Eltwise&>(layer).operation()) {
          case EltwiseOperation::kSum:
            y[i] += x;
            break;
          case EltwiseOperation::kProduct:
            y[i] *= x;
            break;
          case EltwiseOperation::kMax:
            y[i] = x > y[i] ? x : y[i];
            break;
        }
      }
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& dy = args.output_gradients[0].values;
    for (size_t k = 0; k < args.inputs.size(); ++k) {
      for (size_t i = 0; i < dy.size(); ++i) {
        args.input_gradients[k].values[i] =
            dy[i] * Derivative(static_cast<const Eltwise&>(layer).operation(), args, k, i);
      }
    }
  }

 private:
  // Returns the derivative of y[i] by element i of input k.
  static double Derivative(EltwiseOperation operation, const RefArgs& args, size_t k, size_t i) {
    if (operation == EltwiseOperation::kSum) return 1;
    double product = 1;
    bool first_largest = true;
    for (size_t other = 0; other < args.inputs.size(); ++other) {
      if (other == k) continue;
      const double x = args.inputs[other].values[i];
      product *= x;
      const double own = args.inputs[k].values[i];
      if (x > own || (x == own && other < k)) first_largest = false;
    }
    return operation == EltwiseOperation::kProduct ? product : first_largest;
  }
};

DTRAIN_LAYER_CASES(
    "eltwise", EltwiseReference,
    {{"vector", "{}", {{4, 10}, {4, 10}}},
     {"image", "{operation: sum}", {{3, 5, 7, 6}, {3, 5, 7, 6}}},
     {"two blocks of samples", "{}", {{18, 3, 4, 4}, {18, 3, 4, 4}}},
     {"long", "{}", {{2, 40000}, {2, 40000}}, 0, false},
     {"sum of three", "{}", {{4, 9}, {4, 9}, {4, 9}}},
     {"sum of ten",
      "{}",
      {{3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}}},
     {"maximum of ten",
      "{operation: max}",
      {{3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}},
      0,
      false},
     {"sum of five images",
      "{}",
      {{3, 2, 4, 5}, {3, 2, 4, 5}, {3, 2, 4, 5}, {3, 2, 4, 5}, {3, 2, 4, 5}}},
     {"sum of four images", "{}", {{3, 2, 4, 5}, {3, 2, 4, 5}, {3, 2, 4, 5}, {3, 2, 4, 5}}},
     {"product", "{operation: product}", {{4, 11}, {4, 11}}},
     {"product of images", "{operation: product}", {{18, 3, 4, 4}, {18, 3, 4, 4}}},
     {"product of four", "{operation: product}", {{3, 7}, {3, 7}, {3, 7}, {3, 7}}},
     {"long product", "{operation: product}", {{2, 40000}, {2, 40000}}, 0, false},
     // Inputs with the same number of elements are filled with the same numbers in another order; with the shapes of
     // these two cases no number is at the same index in two inputs.
     {"max", "{operation: max}", {{3, 9}, {3, 9}}},
     {"max of four", "{operation: max}", {{3, 11}, {3, 11}, {3, 11}, {3, 11}}},
     {"max, some equal", "{operation: max}", {{4, 11}, {4, 11}}, 0, false},
     {"max of images", "{operation: max}", {{18, 3, 4, 4}, {18, 3, 4, 4}}, 0, false},
     {"max of four, some equal", "{operation: max}", {{3, 7}, {3, 7}, {3, 7}, {3, 7}}, 0, false},
     {"long max", "{operation: max}", {{2, 40000}, {2, 40000}, {2, 40000}}, 0, false}});

}  // namespace
}  // namespace dtrain
