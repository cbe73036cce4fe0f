// Implements local response normalisation in plain loops, as the reference for the tests.
#include <algorithm>
#include <cmath>

#include "framework/nn/layer_case.h"
#include "layers/lrn/lrn.h"

namespace dtrain {
namespace {

class LrnReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto& lrn = static_cast<const Lrn&>(layer);
    const auto& x = args.inputs[0].values;
    for (int64_t i = 0; i < args.inputs[0].shape.count(); ++i) {
      args.outputs[0].values[i] = x[i] * std::pow(Scale(lrn, args, i), -lrn.beta());
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& lrn = static_cast<const Lrn&>(layer);
    const auto &x = args.inputs[0].values, &y = args.outputs[0].values;
    const auto& dy = args.output_gradients[0].values;
    const double factor = 2 * lrn.alpha() * lrn.beta() / static_cast<double>(lrn.local_size());
    for (int64_t i = 0; i < args.inputs[0].shape.count(); ++i) {
      double sum = 0;
      ForEachNear(lrn, args, i, [&](int64_t j) { sum += dy[j] * y[j] / Scale(lrn, args, j); });
      args.input_gradients[0].values[i] =
          dy[i] * std::pow(Scale(lrn, args, i), -lrn.beta()) - factor * x[i] * sum;
    }
  }

 private:
  static double Scale(const Lrn& lrn, const RefArgs& args, int64_t i) {
    double sum = 0;
    ForEachNear(lrn, args, i,
                [&](int64_t j) { sum += args.inputs[0].values[j] * args.inputs[0].values[j]; });
    return lrn.k() + lrn.alpha() / static_cast<double>(lrn.local_size()) * sum;
  }

  // Calls body(index) for element i's pixel in the channels around i's channel.
  template <class Body>
  static void ForEachNear(const Lrn& lrn, const RefArgs& args, int64_t i, const Body& body) {
    const Shape& shape = args.inputs[0].shape;
    const int64_t plane = shape.CountFrom(2), c = i / plane % shape[1];
    const int64_t reach = (lrn.local_size() - 1) / 2;
    for (int64_t near = std::max<int64_t>(0, c - reach); near <= std::min(shape[1] - 1, c + reach);
         ++near) {
      body(i + (near - c) * plane);
    }
  }
};

// The power adds a few rounding errors to those of a plain sum.
DTRAIN_LAYER_CASES(
    "lrn", LrnReference,
    {{"image", "{}", {{3, 7, 4, 5}}, 0, true, 4},
     {"vector", "{}", {{4, 9}}, 0, true, 4},
     {"fewer channels than the window", "{}", {{2, 2, 3, 3}}, 0, true, 4},
     {"one channel", "{local_size: 3}", {{2, 1, 3, 3}}, 0, true, 4},
     {"each by itself", "{local_size: 1}", {{2, 4, 3, 3}}, 0, true, 4},
     {"AlexNet's", "{local_size: 5, alpha: 0.0005, k: 2}", {{2, 9, 3, 4}}, 0, true, 4},
     {"square root", "{beta: 0.5, alpha: 2}", {{3, 6, 2, 3}}, 0, true, 4},
     {"another power", "{beta: 1.3, k: 0.7}", {{3, 6, 2, 3}}, 0, true, 4},
     {"first maps of a net", "{alpha: 0.0001}", {{4, 32, 28, 28}}, 0, false, 4}});

}  // namespace
}  // namespace dtrain
