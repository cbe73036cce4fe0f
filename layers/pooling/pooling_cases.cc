// Implements pooling in plain loops, as the reference against which every kernel is tested.
#include <cmath>
#include <utility>

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
      y.values[out] =
          pool.is_max() ? x[Largest(pool, args, out)] : sum / WindowOf(pool, args, out).pixels();
    }
  }

  void Backward(const Layer& layer, RefArgs& args) const override {
    const auto& pool = static_cast<const Pooling&>(layer);
    auto& dx = args.input_gradients[0].values;
    for (int64_t out = 0; out < args.outputs[0].shape.count(); ++out) {
      const double dy = args.output_gradients[0].values[out];
      if (pool.is_max()) {
        dx[Largest(pool, args, out)] += dy;
      } else {
        const double share = 1 / WindowOf(pool, args, out).pixels();
        ForEachPixel(pool, args, out, [&](int64_t in) { dx[in] += share * dy; });
      }
    }
  }

 private:
  struct Window {
    int64_t top, bottom, left, right;
    double pixels() const { return static_cast<double>((bottom - top) * (right - left)); }
  };

  // Returns the window of y[out], including its pixels outside the image.
  static Window WindowOf(const Pooling& pool, const RefArgs& args, int64_t out) {
    const Shape& y = args.outputs[0].shape;
    const auto [top, bottom] = Pixels(pool.windows().rows, out / y[3] % y[2]);
    const auto [left, right] = Pixels(pool.windows().columns, out % y[3]);
    return {top, bottom, left, right};
  }
  static std::pair<int64_t, int64_t> Pixels(const PoolingAxis& axis, int64_t window) {
    if (!axis.adaptive) {
      const int64_t start = window * axis.stride - axis.pad;
      return {start, start + axis.kernel};
    }
    const double pixels = static_cast<double>(axis.pixels) / static_cast<double>(axis.windows);
    const auto i = static_cast<double>(window);
    return {std::floor(i * pixels + 1e-9), std::ceil((i + 1) * pixels - 1e-9)};
  }

  // Returns the index in x of the first largest pixel in the window of y[out].
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
    const int64_t plane = out / args.outputs[0].shape.CountFrom(2);
    const Window window = WindowOf(pool, args, out);
    for (int64_t row = window.top; row < window.bottom; ++row) {
      for (int64_t column = window.left; column < window.right; ++column) {
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
     {"global maximum of many pixels", "{global: true}", {{2, 3, 17, 16}}},
     {"global maximum of many pixels, blocks", "{global: true}", {{18, 16, 16, 16}}, 0, false},
     {"large window", "{kernel: 16, stride: 3, pad: 2}", {{2, 2, 19, 21}}, 0, false},
     {"wide window", "{kernel: [2, 3]}", {{3, 2, 6, 8}}},
     {"tall window, strides apart, pads apart",
      "{kernel: [4, 2], stride: [2, 1], pad: [2, 0]}",
      {{2, 3, 9, 5}}},
     {"square window, strides apart", "{kernel: 3, stride: [1, 2], pad: 1}", {{18, 16, 6, 7}}},
     {"square window, pads apart", "{kernel: 3, stride: 2, pad: [0, 1]}", {{3, 16, 7, 6}}},
     {"average, wide window, pads apart",
      "{method: average, kernel: [1, 4], stride: [1, 2], pad: [0, 2]}",
      {{2, 3, 5, 8}}},
     {"adaptive average", "{method: average, adaptive: [3, 2]}", {{3, 2, 7, 5}}},
     {"adaptive average, evenly", "{method: average, adaptive: 2}", {{18, 16, 6, 6}}},
     {"adaptive average, one side evenly", "{method: average, adaptive: 3}", {{2, 3, 6, 7}}},
     {"adaptive average, more than pixels", "{method: average, adaptive: [5, 7]}", {{2, 2, 3, 4}}},
     {"adaptive average, many channels", "{method: average, adaptive: 3}", {{3, 16, 7, 8}}},
     {"adaptive maximum", "{adaptive: [2, 3]}", {{3, 2, 5, 7}}},
     {"adaptive maximum, evenly", "{adaptive: [3, 2]}", {{17, 3, 6, 8}}},
     {"adaptive maximum, more than pixels", "{adaptive: 4}", {{2, 2, 3, 3}}},
     {"adaptive maximum of many pixels", "{adaptive: 2}", {{2, 3, 33, 35}}, 0, false},
     {"lenet first", "{}", {{64, 6, 28, 28}}, 0, false}});

}  // namespace
}  // namespace dtrain
