// Exports convolution as ONNX operators.
#include "framework/onnx/onnx_layer.h"
#include "layers/convolution/convolution.h"

namespace dtrain {
namespace {

std::vector<int64_t> Pair(const HeightWidth& sides) { return {sides.height, sides.width}; }

void TranslateConvolution(OnnxLayer& to) {
  const auto& layer = to.As<Convolution>();
  const HeightWidth& pad = layer.pad();
  std::vector<std::string> inputs = {to.input(0), to.Param(0)};
  if (layer.has_bias()) inputs.push_back(to.Param(1));
  to.Result("Conv", std::move(inputs),
            {{"kernel_shape", Pair(layer.kernel())},
             {"strides", Pair(layer.stride())},
             {"dilations", Pair(layer.dilation())},
             {"pads", std::vector<int64_t>{pad.height, pad.width, pad.height, pad.width}},
             {"group", layer.groups()}});
}

DTRAIN_ONNX("convolution", TranslateConvolution);

}  // namespace
}  // namespace dtrain
