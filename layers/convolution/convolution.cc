#include "layers/convolution/convolution.h"

#include "framework/core/error.h"
#include "framework/nn/initializer.h"

namespace dtrain {

void Convolution::Configure(config::Reader& reader) {
  outputs_ =
      reader.Int("outputs", 1).Required().Min(1).Max(kLargestExtent).Help("channels of the output");
  kernel_ = reader.Int("kernel", 1)
                .Required()
                .Min(1)
                .Max(kLargestWindow)
                .Help("height and width of the window");
  stride_ = reader.Int("stride", 1).Min(1).Max(kLargestWindow).Help("pixels between two windows");
  pad_ = reader.Int("pad", 0).Min(0).Max(kLargestWindow).Help("zeros around the image");
  has_bias_ = reader.Bool("bias", true).Help("add a learned constant to each output channel");
  weight_init_ =
      ReadInitSpec(reader.Section("weight_init", "how the weights start"), {"kaiming", 0});
  bias_init_ = ReadInitSpec(reader.Section("bias_init", "how the bias starts"), {"constant", 0});
}

std::vector<Shape> Convolution::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const std::string window = Shape{kernel_, kernel_}.ToString();
  if (x.rank() != 4) {
    throw ShapeError("an input of shape " + x.ToString() + " is no image for a window of " +
                     window + "; it takes [N, C, H, W]");
  }
  if (x[2] + 2 * pad_ < kernel_ || x[3] + 2 * pad_ < kernel_) {
    throw ShapeError("a window of " + window + " does not fit into the input " + x.ToString() +
                     " with pad " + std::to_string(pad_));
  }
  channels_ = x[1];
  return {{x[0], outputs_, OutputExtent(x[2]), OutputExtent(x[3])}};
}

std::vector<ParamSpec> Convolution::Params() const {
  const int64_t fan_in = channels_ * kernel_ * kernel_;
  const int64_t fan_out = outputs_ * kernel_ * kernel_;
  std::vector<ParamSpec> params;
  params.push_back(
      {"weight", {outputs_, channels_, kernel_, kernel_}, weight_init_, fan_in, fan_out});
  if (has_bias_) params.push_back({"bias", {outputs_}, bias_init_, fan_in, fan_out});
  return params;
}

Cost Convolution::CostOf(std::span<const Shape> inputs) const {
  const Shape& x = inputs[0];
  const double pixels =
      static_cast<double>(x[0] * outputs_ * OutputExtent(x[2]) * OutputExtent(x[3]));
  const double forward = 2 * pixels * static_cast<double>(channels_ * kernel_ * kernel_);
  return {forward, 2 * forward};
}

DTRAIN_LAYER("convolution", Convolution, "a learned window moved over the image (PyTorch Conv2d)");

}  // namespace dtrain
