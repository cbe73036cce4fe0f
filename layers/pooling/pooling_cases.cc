// Pooling in plain loops: the measure for every kernel.
#include "framework/nn/layer_case.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

class PoolingReference : public LayerReference {
 public:
  void Forward(const Layer& layer, RefArgs& args) const override {
    const auto& pool = static_cast<const Pooling&>(layer);
    const auto& x = args.inputs[0].values;
    auto& y = args.outputs[0];
    for (int64_t out = 0; out < y.shape.count(); ++out) {
      double sum = 0;
      ForEachPixel(pool, args, out, [&](int64_t in) { sum += x[in]; });
      y.values[out] = pool.is_max()
                          ? x[Largest(pool, args, out)]
                          : sum / static_cast<double>(pool.kernel_height() * pool.kernel_width());
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& pool = static_cast<const Pooling&>(layer);
    auto& dx = args.input_gradients[0].values;
    const double share = 1.0 / static_cast<double>(pool.kernel_height() * pool.kernel_width());
    for (int64_t out = 0; out < args.outputs[0].shape.count(); ++out) {
      const double dy = args.output_gradients[0].values[out];
      if (pool.is_max()) {
        dx[Largest(pool, args, out)] += dy;
      } else {
        ForEachPixel(pool, args, out, [&](int64_t in) { dx[in] += share * dy; });
      }
    }
  }

 private:
  // The index in x of the first largest pixel of the window of y[out].
  static int64_t Largest(const Pooling& pool, const RefArgs& args, int64_t out) {
    const auto& x = args.inputs[0].values;
    int64_t best = -1;
    ForEachPixel(pool, args, out, [&](int64_t in) {
      if (best < 0 || x[in] > x[best]) best = in;
    });
    return best;
  }

  // Calls pixel(index in x) for the pixels of the window of y[out] that are inside the image.
  template <class Pixel>
  static void ForEachPixel(const Pooling& pool, const RefArgs& args, int64_t out,
                           const Pixel& pixel) {
    const Shape& x = args.inputs[0].shape;
    const Shape& y = args.outputs[0].shape;
    const int64_t plane = out / y.CountFrom(2);
    const int64_t top = out / y[3] % y[2] * pool.stride() - pool.pad();
    const int64_t left = out % y[3] * pool.stride() - pool.pad();
    for (int64_t row = top; row < top + pool.kernel_height(); ++row) {
      for (int64_t column = left; column < left + pool.kernel_width(); ++column) {
        if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
        pixel((plane * x[2] + row) * x[3] + column);
      }
    }
  }
};

DTRAIN_LAYER_CASES(
    "pooling", PoolingReference,
    {{"defaults", "{}", {{1, 2, 4, 6}}},
     {"odd image", "{}", {{5, 3, 7, 5}}},
     {"overlap", "{kernel: 3, stride: 2}", {{2, 3, 7, 9}}},
     {"overlap, pad", "{kernel: 3, stride: 2, pad: 1}", {{3, 2, 8, 6}}},
     {"gaps", "{kernel: 2, stride: 3}", {{2, 2, 9, 8}}},
     {"two blocks and a rest", "{}", {{33, 3, 4, 6}}},
     {"block, odd image", "{}", {{16, 2, 5, 7}}},
     {"block, overlap, pad", "{kernel: 3, stride: 2, pad: 1}", {{18, 3, 7, 8}}},
     {"whole image", "{kernel: 6}", {{4, 5, 6, 6}}},
     {"average", "{method: average}", {{5, 3, 6, 4}}},
     {"average, pad", "{method: average, kernel: 3, stride: 2, pad: 1}", {{2, 3, 7, 8}}},
     {"average, blocks", "{method: average, kernel: 3, stride: 1, pad: 1}", {{33, 2, 6, 5}}},
     {"average, odd image", "{method: average}", {{17, 2, 7, 5}}},
     {"global average", "{method: average, global: true}", {{3, 5, 4, 4}}},
     {"global average, wide", "{method: average, global: true}", {{18, 3, 5, 17}}},
     {"global maximum", "{global: true}", {{2, 3, 7, 9}}},
     {"lenet first", "{}", {{64, 6, 28, 28}}, 0, false}});

}  // namespace
}  // namespace dtrain
