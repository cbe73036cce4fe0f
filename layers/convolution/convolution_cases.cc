#include "layers/convolution/convolution_ref.h"

namespace dtrain {
namespace {

// The winograd kernel's rounding errors, over those of a plain sum.
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
      false},
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
     {"many channels, stride",
      "{outputs: 32, kernel: 3, stride: 2, pad: 1, weight_init: {name: gaussian, value: 0.1}}",
      {{3, 24, 9, 8}},
      0,
      false}});

}  // namespace
}  // namespace dtrain
