// Implements softmax cross-entropy in plain loops, as the reference for the tests.
#include <algorithm>
#include <cmath>

#include "framework/nn/layer_case.h"
#include "layers/softmax_cross_entropy/softmax_cross_entropy.h"

namespace dtrain {
namespace {

class SoftmaxCrossEntropyReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto& loss = static_cast<const SoftmaxCrossEntropy&>(layer);
    const int64_t terms = args.inputs[1].shape.CountFrom(1);
    for (int64_t n = 0; n < args.outputs[0].shape[0]; ++n) {
      args.outputs[0].values[n] = 0;
      for (int64_t t = n * terms; t < (n + 1) * terms; ++t) {
        if (loss.Ignores(Label(args, t))) continue;
        args.outputs[0].values[n] += LogSum(args, t);
        for (int64_t c = 0; c < Classes(args); ++c) {
          args.outputs[0].values[n] -= Target(loss, args, t, c) * Logit(args, t, c);
        }
      }
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& loss = static_cast<const SoftmaxCrossEntropy&>(layer);
    const int64_t classes = Classes(args);
    for (int64_t t = 0; t < args.inputs[1].shape.count(); ++t) {
      if (loss.Ignores(Label(args, t))) continue;
      const double log_sum = LogSum(args, t);
      for (int64_t c = 0; c < classes; ++c) {
        const double p = std::exp(Logit(args, t, c) - log_sum);
        args.input_gradients[0].values[t * classes + c] =
            (p - Target(loss, args, t, c)) * args.loss_scale;
      }
    }
  }

 private:
  static int64_t Classes(const RefArgs& args) {
    return args.inputs[0].shape.count() / args.inputs[1].shape.count();
  }
  static double Logit(const RefArgs& args, int64_t t, int64_t c) {
    return args.inputs[0].values[t * Classes(args) + c];
  }
  static int64_t Label(const RefArgs& args, int64_t t) {
    return static_cast<int64_t>(args.inputs[1].values[t]);
  }
  // Returns q (softmax_cross_entropy.h).
  static double Target(const SoftmaxCrossEntropy& loss, const RefArgs& args, int64_t t, int64_t c) {
    const double smoothing = loss.label_smoothing();
    return (c == Label(args, t) ? 1 - smoothing : 0) +
           smoothing / static_cast<double>(Classes(args));
  }
  static double LogSum(const RefArgs& args, int64_t t) {
    double largest = Logit(args, t, 0);
    for (int64_t c = 1; c < Classes(args); ++c) largest = std::max(largest, Logit(args, t, c));
    double sum = 0;
    for (int64_t c = 0; c < Classes(args); ++c) sum += std::exp(Logit(args, t, c) - largest);
    return largest + std::log(sum);
  }
};

// The exponential, the logarithm and the division each add a rounding error to those of a plain sum.
DTRAIN_LAYER_CASES(
    "softmax_cross_entropy", SoftmaxCrossEntropyReference,
    {{"two classes", "{}", {{3, 2}, {3}}, 2, true, 4},
     {"ten classes", "{}", {{17, 10}, {17}}, 10, true, 4},
     {"one class", "{}", {{4, 1}, {4}}, 1, true, 4},
     {"many classes", "{}", {{2, 1000}, {2}}, 1000, false, 4},
     {"sentences", "{}", {{3, 5, 11}, {3, 5}}, 11, true, 4},
     {"padded sentences", "{ignore: 1}", {{3, 7, 5}, {3, 7}}, 5, true, 4},
     {"maps of labels", "{ignore: 0}", {{2, 3, 2, 4}, {2, 3, 2}}, 4, true, 4},
     {"smoothing", "{label_smoothing: 0.1}", {{5, 10}, {5}}, 10, true, 4},
     {"smoothing, padded", "{label_smoothing: 0.2, ignore: 1}", {{3, 4, 37}, {3, 4}}, 37, true, 4},
     {"vocabulary", "{ignore: 1}", {{4, 5, 1777}, {4, 5}}, 1777, false, 4}});

}  // namespace
}  // namespace dtrain
