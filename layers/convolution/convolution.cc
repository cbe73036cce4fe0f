#include "layers/convolution/convolution.h"

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/nn/initializer.h"

namespace dtrain {

void Convolution::Configure(config::Reader& reader) {
  outputs_ =
      reader.Int("outputs", 1).Required().Min(1).Max(kLargestExtent).Help("channels of the output");
  kernel_ = ReadHeightWidth(reader, {.key = "kernel",
                                     .least = 1,
                                     .most = kLargestWindow,
                                     .help = "size of the window",
                                     .required = true});
  stride_ = ReadHeightWidth(
      reader,
      {.key = "stride", .least = 1, .most = kLargestWindow, .help = "pixels between two windows"});
  pad_ = ReadHeightWidth(reader, {.key = "pad",
                                  .default_value = {0, 0},
                                  .most = kLargestWindow,
                                  .help = "zeros around the image"});
  dilation_ = ReadHeightWidth(reader, {.key = "dilation",
                                       .least = 1,
                                       .most = kLargestWindow,
                                       .help = "pixels from one weight of the window to the next"});
  groups_ =
      reader.Int("groups", 1)
          .Min(1)
          .Max(kLargestExtent)
          .Help("groups of channels that are convolved separately; as many as channels: depthwise");
  if (outputs_ % groups_ != 0) {
    reader.AddError(
        "groups",
        fmt::format("outputs {} cannot be divided into groups {} evenly", outputs_, groups_), "",
        {"outputs"});
  }
  has_bias_ = reader.Bool("bias", true).Help("add a learned constant to each output channel");
  weight_init_ =
      ReadInitSpec(reader.Section("weight_init", "initial values of the weights"), {"kaiming", 0});
  bias_init_ =
      ReadInitSpec(reader.Section("bias_init", "initial values of the bias"), {"constant", 0});
}

std::vector<Shape> Convolution::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  const std::string window = Shape{kernel_.height, kernel_.width}.ToString();
  if (x.rank() != 4) {
    throw ShapeError("an input of shape " + x.ToString() + " is no image for a window of " +
                     window + "; it takes [N, C, H, W]");
  }
  const HeightWidth reach = Reach();
  if (x[2] + 2 * pad_.height < reach.height || x[3] + 2 * pad_.width < reach.width) {
    const bool dilated = dilation_ != HeightWidth{};
    throw ShapeError(fmt::format("a window of {}{} does not fit into the input {} with pad {}",
                                 window, dilated ? " with dilation " + dilation_.ToString() : "",
                                 x.ToString(), pad_.ToString()),
                     "use a smaller kernel, or a larger pad");
  }
  if (x[1] % groups_ != 0) {
    throw ShapeError(fmt::format("the {} of the input {} cannot be divided into {} groups",
                                 Counted(x[1], "channel"), x.ToString(), groups_));
  }
  channels_ = x[1];
  return {OutputOf(x)};
}

Shape Convolution::OutputOf(const Shape& x) const {
  const HeightWidth reach = Reach();
  return {x[0], outputs_, (x[2] + 2 * pad_.height - reach.height) / stride_.height + 1,
          (x[3] + 2 * pad_.width - reach.width) / stride_.width + 1};
}

// The fans are counted as in PyTorch: fan_out includes the outputs of all groups.
std::vector<ParamSpec> Convolution::Params() const {
  const int64_t inputs = channels_ / groups_;
  const int64_t fan_in = inputs * kernel_.area();
  const int64_t fan_out = outputs_ * kernel_.area();
  std::vector<ParamSpec> params;
  params.push_back(
      {"weight", {outputs_, inputs, kernel_.height, kernel_.width}, weight_init_, fan_in, fan_out});
  if (has_bias_) params.push_back({"bias", {outputs_}, bias_init_, fan_in, fan_out});
  return params;
}

Cost Convolution::CostOf(std::span<const Shape> inputs) const {
  const double results = static_cast<double>(OutputOf(inputs[0]).count());
  const double forward = 2 * results * static_cast<double>(channels_ / groups_ * kernel_.area());
  return {forward, 2 * forward};
}

DTRAIN_LAYER("convolution", Convolution, "a learned window moved over the image (PyTorch Conv2d)");

}  // namespace dtrain
