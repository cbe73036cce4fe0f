// Implements convolution in plain loops, as the reference against which every kernel is tested.
#include "framework/nn/layer_case.h"
#include "layers/convolution/convolution.h"

namespace dtrain {
namespace {

class ConvolutionReference : public LayerReference {
 public:
  // y[n,o,i,j] = b[o] + sum_{c,k,l} x[n,g*C/G+c,i*s-p+k*d,j*s-p+l*d] w[o,c,k,l], g = o/(O/G)
  void Forward(const Layer& layer, RefArgs& args) const override {
    const double* const x = args.inputs[0].values.data();
    const double* const w = args.params[0].values.data();
    auto& y = args.outputs[0];
    double* const sums = y.values.data();
    for (int64_t at = 0, plane = y.shape.CountFrom(2); at < y.shape.count(); ++at) {
      y.values[at] = args.params.size() > 1 ? args.params[1].values[at / plane % y.shape[1]] : 0;
    }
    ForEachProduct(layer, args, [&](int64_t out, int64_t in, int64_t weight) {
      sums[out] += x[in] * w[weight];
    });
  }

  // Every product y += x w of Forward gives dx += dy w and dw += dy x; db[o] = sum dy[:,o,:,:].
  void Backward(const Layer& layer, RefArgs& args) const override {
    const double* const x = args.inputs[0].values.data();
    const double* const w = args.params[0].values.data();
    const auto& dy = args.output_gradients[0];
    const double* const gradients = dy.values.data();
    double* const dx = args.input_gradients[0].values.data();
    double* const dw = args.param_gradients[0].values.data();
    ForEachProduct(layer, args, [&](int64_t out, int64_t in, int64_t weight) {
      dx[in] += gradients[out] * w[weight];
      dw[weight] += gradients[out] * x[in];
    });
    if (args.params.size() < 2) return;
    for (int64_t at = 0, plane = dy.shape.CountFrom(2); at < dy.shape.count(); ++at) {
      args.param_gradients[1].values[at / plane % dy.shape[1]] += dy.values[at];
    }
  }

 private:
  // Calls product(index in y, index in x, index in w) for each multiply-add, pixel by pixel of a map for each weight.
  template <class Product>
  static void ForEachProduct(const Layer& layer, const RefArgs& args, const Product& product) {
    const auto& conv = static_cast<const Convolution&>(layer);
    const Shape& x = args.inputs[0].shape;
    const Shape& y = args.outputs[0].shape;
    const HeightWidth &k = conv.kernel(), &dilation = conv.dilation(), &stride = conv.stride();
    const int64_t channels = x[1] / conv.groups(), outputs = y[1] / conv.groups();
    const int64_t taps = channels * k.area();
    const int64_t in_height = x[2], in_width = x[3], out_height = y[2], out_width = y[3];
    for (int64_t map = 0; map < y[0] * y[1]; ++map) {
      const int64_t n = map / y[1], o = map % y[1];
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t c = o / outputs * channels + tap / k.area();
        const int64_t top = tap / k.width % k.height * dilation.height - conv.pad().height;
        const int64_t left = tap % k.width * dilation.width - conv.pad().width;
        for (int64_t i = 0; i < out_height; ++i) {
          const int64_t row = top + i * stride.height;
          if (row < 0 || row >= in_height) continue;
          const int64_t in = ((n * x[1] + c) * in_height + row) * in_width;
          for (int64_t j = 0; j < out_width; ++j) {
            const int64_t column = left + j * stride.width;
            if (column < 0 || column >= in_width) continue;
            product((map * out_height + i) * out_width + j, in + column, o * taps + tap);
          }
        }
      }
    }
  }
};

// This allows for the Winograd kernel's rounding errors, relative to those of a plain sum.
constexpr double kWinograd = 8;

DTRAIN_LAYER_CASES(
    "convolution", ConvolutionReference,
    {{"one sample", "{outputs: 3, kernel: 3}", {{1, 2, 5, 6}}},
     {"five samples, pad", "{outputs: 4, kernel: 3, pad: 1}", {{5, 3, 6, 5}}},
     {"stride", "{outputs: 5, kernel: 3, stride: 2, pad: 1}", {{2, 3, 7, 8}}},
     {"1x1", "{outputs: 7, kernel: 1}", {{3, 5, 4, 4}}},
     {"1x1, stride, no bias", "{outputs: 32, kernel: 1, stride: 2, bias: false}", {{3, 16, 7, 8}}},
     {"no bias, stride, pad",
      "{outputs: 16, kernel: 3, stride: 2, pad: 1, bias: false}",
      {{2, 16, 8, 8}},
      0,
      false,
      kWinograd},
     {"stride, odd sizes",
      "{outputs: 48, kernel: 3, stride: 2, pad: 1}",
      {{3, 80, 9, 7}},
      0,
      false,
      kWinograd},
     {"stride, many tiles",
      "{outputs: 16, kernel: 3, stride: 2, pad: 1}",
      {{9, 16, 33, 32}},
      0,
      false,
      kWinograd},
     {"no bias", "{outputs: 3, kernel: 5, bias: false}", {{2, 2, 7, 7}}},
     {"two by two", "{outputs: 2, kernel: 2, stride: 2}", {{2, 3, 4, 6}}},
     {"kernel as large as the image", "{outputs: 5, kernel: 5}", {{16, 3, 5, 5}}, 0, false},
     {"a block", "{outputs: 6, kernel: 5, pad: 2}", {{16, 1, 12, 13}}, 0, false},
     {"two blocks and a rest", "{outputs: 7, kernel: 5}", {{33, 6, 9, 11}}, 0, false},
     {"rest of a block, pad", "{outputs: 9, kernel: 3, pad: 1}", {{21, 4, 8, 7}}, 0, false},
     {"pad wider than needed", "{outputs: 3, kernel: 3, pad: 2}", {{17, 2, 4, 3}}, 0, false},
     {"wide rows", "{outputs: 5, kernel: 5, pad: 2}", {{16, 2, 6, 45}}, 0, false},
     {"wide rows, three", "{outputs: 11, kernel: 3}", {{16, 5, 5, 37}}, 0, false},
     {"lenet second", "{outputs: 16, kernel: 5}", {{32, 6, 14, 14}}, 0, false},
     {"caffe second", "{outputs: 50, kernel: 5}", {{16, 20, 12, 12}}, 0, false},
     {"whole vectors of channels",
      "{outputs: 32, kernel: 3, pad: 1}",
      {{4, 16, 9, 9}},
      0,
      false,
      kWinograd},
     {"maps of four", "{outputs: 48, kernel: 3, pad: 1}", {{3, 80, 4, 4}}, 0, false, kWinograd},
     {"maps of two",
      "{outputs: 80, kernel: 3, pad: 1, bias: false}",
      {{5, 48, 2, 2}},
      0,
      false,
      kWinograd},
     {"one pixel", "{outputs: 16, kernel: 3, pad: 1}", {{3, 16, 1, 1}}, 0, false, kWinograd},
     {"tiles cut off, no pad", "{outputs: 16, kernel: 3}", {{2, 32, 8, 9}}, 0, false, kWinograd},
     {"whole vectors, wide pad",
      "{outputs: 16, kernel: 3, pad: 2}",
      {{2, 16, 5, 3}},
      0,
      false,
      kWinograd},
     {"many tiles", "{outputs: 16, kernel: 3, pad: 1}", {{9, 16, 26, 26}}, 0, false, kWinograd},
     {"blocks of channels",
      "{outputs: 64, kernel: 3, pad: 1}",
      {{5, 32, 7, 6}},
      0,
      false,
      kWinograd},
     {"blocks, two groups of images, stride",
      "{outputs: 32, kernel: 3, stride: 2, pad: 1}",
      {{33, 64, 6, 5}},
      0,
      false,
      kWinograd},
     {"blocks, rows in turn",
      "{outputs: 32, kernel: 3, pad: 1, bias: false}",
      {{2, 32, 25, 24}},
      0,
      false,
      kWinograd},
     {"blocks, rows in turn, stride",
      "{outputs: 32, kernel: 3, stride: 2, pad: 1}",
      {{1, 32, 49, 34}},
      0,
      false,
      kWinograd},
     {"blocks, two groups of images, rows in turn, stride",
      "{outputs: 64, kernel: 3, stride: 2, pad: 1}",
      {{33, 64, 17, 16}},
      0,
      false,
      kWinograd},
     {"blocks, two groups of images, rows in turn, two by two",
      "{outputs: 64, kernel: 2}",
      {{33, 32, 17, 18}},
      0,
      false},
     {"blocks, 1x1, stride",
      "{outputs: 32, kernel: 1, stride: 2, bias: false}",
      {{18, 64, 6, 5}},
      0,
      false},
     {"blocks, two by two", "{outputs: 32, kernel: 2, stride: 2}", {{4, 32, 5, 5}}, 0, false},
     {"blocks, five, stride, pad",
      "{outputs: 32, kernel: 5, stride: 2, pad: 2}",
      {{2, 32, 9, 8}},
      0,
      false},
     {"blocks, seven, stride beyond half of it, pad",
      "{outputs: 32, kernel: 7, stride: 4, pad: 3}",
      {{2, 32, 12, 11}},
      0,
      false},
     {"blocks, stride beyond the window, pad",
      "{outputs: 32, kernel: 2, stride: 3, pad: 1}",
      {{2, 32, 7, 8}},
      0,
      false},
     {"blocks, 1x1, pad", "{outputs: 32, kernel: 1, pad: 1}", {{2, 32, 3, 3}}, 0, false},
     {"many channels, stride",
      "{outputs: 32, kernel: 3, stride: 2, pad: 1, weight_init: {name: gaussian, value: 0.1}}",
      {{3, 24, 9, 8}},
      0,
      false},
     {"wide window", "{outputs: 3, kernel: [3, 5], pad: [1, 2]}", {{2, 2, 6, 7}}},
     {"tall window, strides apart, pads apart",
      "{outputs: 5, kernel: [5, 2], stride: [2, 1], pad: [2, 0]}",
      {{3, 4, 9, 5}}},
     {"a row", "{outputs: 16, kernel: [1, 7], pad: [0, 3], bias: false}", {{5, 16, 4, 9}}},
     {"strides apart, square window",
      "{outputs: 32, kernel: 3, stride: [1, 2], pad: 1}",
      {{2, 32, 6, 8}},
      0,
      false},
     {"1x1, strides apart", "{outputs: 16, kernel: 1, stride: [1, 2]}", {{3, 8, 5, 7}}},
     {"pads apart, square window",
      "{outputs: 16, kernel: 3, pad: [1, 0]}",
      {{3, 16, 6, 7}},
      0,
      false},
     {"dilation", "{outputs: 3, kernel: 3, dilation: 2}", {{2, 2, 8, 7}}},
     {"dilation, pad, stride",
      "{outputs: 4, kernel: 3, dilation: 3, pad: 3, stride: 2}",
      {{3, 3, 9, 11}}},
     {"dilations apart",
      "{outputs: 4, kernel: [3, 2], dilation: [1, 4], pad: [1, 2], bias: false}",
      {{2, 5, 6, 8}}},
     {"dilation, whole vectors of channels",
      "{outputs: 32, kernel: 3, dilation: 2, pad: 2}",
      {{4, 32, 9, 8}},
      0,
      false},
     {"groups", "{outputs: 4, kernel: 3, pad: 1, groups: 2}", {{2, 6, 5, 6}}},
     {"groups, stride, no bias",
      "{outputs: 9, kernel: 3, stride: 2, pad: 1, groups: 3, bias: false}",
      {{5, 3, 7, 8}}},
     {"groups, 1x1", "{outputs: 12, kernel: 1, groups: 4}", {{3, 8, 4, 5}}},
     {"groups of whole vectors",
      "{outputs: 64, kernel: 3, pad: 1, groups: 2}",
      {{3, 32, 7, 6}},
      0,
      false},
     {"groups, 1x1, stride",
      "{outputs: 32, kernel: 1, stride: 2, groups: 2}",
      {{4, 32, 6, 5}},
      0,
      false},
     {"depthwise", "{outputs: 5, kernel: 3, pad: 1, groups: 5}", {{2, 5, 6, 5}}},
     {"depthwise, whole vectors",
      "{outputs: 32, kernel: 3, pad: 1, groups: 32, bias: false}",
      {{5, 32, 9, 8}},
      0,
      false},
     {"depthwise, stride",
      "{outputs: 16, kernel: 3, stride: 2, pad: 1, groups: 16}",
      {{3, 16, 7, 9}},
      0,
      false},
     {"depthwise, two outputs a channel, wide window",
      "{outputs: 12, kernel: [1, 3], pad: [0, 1], groups: 6}",
      {{3, 6, 4, 5}}},
     {"depthwise, dilation, many channels",
      "{outputs: 48, kernel: 3, dilation: 2, pad: 2, groups: 48}",
      {{2, 48, 8, 8}},
      0,
      false},
     {"groups, dilation, all apart",
      "{outputs: 6, kernel: [2, 3], stride: [2, 1], pad: [1, 2], dilation: [3, 2], groups: 2}",
      {{3, 4, 9, 8}}}});

}  // namespace
}  // namespace dtrain
