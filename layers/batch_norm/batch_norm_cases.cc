// Implements batch normalisation in plain loops, as the reference against which every kernel is tested.
#include <cmath>

#include "framework/nn/layer_case.h"
#include "layers/batch_norm/batch_norm.h"

namespace dtrain {
namespace {

class BatchNormReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto& norm = static_cast<const BatchNorm&>(layer);
    const auto& x = args.inputs[0];
    for (int64_t c = 0; c < norm.channels(); ++c) {
      const Statistics s = StatisticsOf(norm, args, c);
      ForEachOf(x.shape, c, [&](int64_t i) {
        args.outputs[0].values[i] = args.params[0].values[c] * (x.values[i] - s.mean) * s.inverse +
                                    args.params[1].values[c];
      });
      if (args.mode == Mode::kEvaluate) continue;
      const double m = args.mode == Mode::kEstimate ? 1 : norm.momentum();
      const double unbiased = s.variance * s.count / (s.count - 1);
      args.next_state[0].values[c] = (1 - m) * args.state[0].values[c] + m * s.mean;
      args.next_state[1].values[c] = (1 - m) * args.state[1].values[c] + m * unbiased;
    }
  }

  // With z = (x - mean) / sqrt(var + eps):  dweight = sum dy z,  dbias = sum dy,
  // dx = weight / sqrt(var + eps) (dy - dbias / count - z dweight / count).  A frozen layer omits the last two terms,
  // since mean and variance do not depend on x.
  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& norm = static_cast<const BatchNorm&>(layer);
    const auto& x = args.inputs[0];
    const auto& dy = args.output_gradients[0].values;
    for (int64_t c = 0; c < norm.channels(); ++c) {
      const Statistics s = StatisticsOf(norm, args, c);
      double& dweight = args.param_gradients[0].values[c];
      double& dbias = args.param_gradients[1].values[c];
      const auto z = [&](int64_t i) { return (x.values[i] - s.mean) * s.inverse; };
      ForEachOf(x.shape, c, [&](int64_t i) {
        dweight += dy[i] * z(i);
        dbias += dy[i];
      });
      ForEachOf(x.shape, c, [&](int64_t i) {
        const double by_batch =
            args.mode == Mode::kEvaluate ? 0 : (dbias + z(i) * dweight) / s.count;
        args.input_gradients[0].values[i] =
            args.params[0].values[c] * s.inverse * (dy[i] - by_batch);
      });
    }
  }

 private:
  struct Statistics {
    double mean = 0;
    double variance = 0;  // biased
    double inverse = 0;   // 1 / sqrt(variance + eps)
    double count = 0;
  };

  // Returns the running statistics in evaluation, else the batch's.
  static Statistics StatisticsOf(const BatchNorm& norm, const RefArgs& args, int64_t c) {
    Statistics s;
    const auto& x = args.inputs[0];
    ForEachOf(x.shape, c, [&](int64_t) { s.count += 1; });
    if (args.mode == Mode::kEvaluate) {
      s.mean = args.state[0].values[c];
      s.variance = args.state[1].values[c];
    } else {
      ForEachOf(x.shape, c, [&](int64_t i) { s.mean += x.values[i] / s.count; });
      ForEachOf(x.shape, c, [&](int64_t i) {
        s.variance += (x.values[i] - s.mean) * (x.values[i] - s.mean) / s.count;
      });
    }
    s.inverse = 1 / std::sqrt(s.variance + norm.eps());
    return s;
  }

  // Calls body(index) for the elements of channel c.
  template <class Body>
  static void ForEachOf(const Shape& shape, int64_t c, const Body& body) {
    const int64_t plane = shape.CountFrom(2);
    for (int64_t n = 0; n < shape[0]; ++n) {
      const int64_t first = (n * shape[1] + c) * plane;
      for (int64_t i = first; i < first + plane; ++i) body(i);
    }
  }
};

// The tolerance is larger than the cost of one element suggests, because every result depends on sums over the batch.
DTRAIN_LAYER_CASES("batch_norm", BatchNormReference,
                   {{"image", "{}", {{4, 3, 5, 6}}, 0, true, 8},
                    {"one channel", "{}", {{6, 1, 4, 4}}, 0, true, 8},
                    {"vector", "{}", {{12, 5}}, 0, true, 8},
                    {"one sample", "{}", {{1, 4, 6, 6}}, 0, true, 8},
                    {"whole vectors of channels", "{}", {{3, 16, 4, 4}}, 0, true, 8},
                    {"eps, momentum", "{eps: 0.01, momentum: 0.3}", {{5, 7, 3, 3}}, 0, true, 8},
                    {"sync, image", "{sync: true}", {{4, 3, 5, 6}}, 0, true, 8},
                    {"sync, vector", "{sync: true}", {{12, 5}}, 0, true, 8},
                    {"sync, one sample", "{sync: true}", {{1, 4, 6, 6}}, 0, true, 8},
                    {"sync, whole vectors", "{sync: true}", {{3, 32, 4, 5}}, 0, true, 8},
                    {"sync, odd channels", "{sync: true}", {{2, 37, 7, 3}}, 0, true, 8},
                    {"sync, resnet stage", "{sync: true}", {{8, 64, 16, 16}}, 0, false, 16},
                    {"resnet stage", "{}", {{8, 64, 16, 16}}, 0, false, 16},
                    {"past the caches", "{}", {{8, 64, 32, 32}}, 0, false, 16}});

}  // namespace
}  // namespace dtrain
