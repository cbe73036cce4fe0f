#include "layers/pooling/pooling.h"

#include "framework/core/error.h"

namespace dtrain {

void Pooling::Configure(config::Reader& reader) {
  const std::string method = reader.String("method", "max")
                                 .OneOf({"max", "average"})
                                 .Help("what a window becomes: its largest pixel or their mean");
  is_max_ = method == "max";
  kernel_ = reader.Int("kernel", 2).Min(1).Max(15).Help("height and width of the window");
  stride_ = reader.Int("stride", kernel_).Min(1).Help("pixels between two windows");
  pad_ = reader.Int("pad", 0).Min(0).Help("pixels around the image; at most half the window");
  if (2 * pad_ > kernel_) {
    reader.Mistake(
        "pad",
        "pad " + std::to_string(pad_) + " is more than half of kernel " + std::to_string(kernel_),
        "a window must touch the image");
  }
}

std::vector<Shape> Pooling::InferShapes(std::span<const Shape> inputs) {
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
  return {{x[0], x[1], OutputExtent(x[2]), OutputExtent(x[3])}};
}

Cost Pooling::CostOf(std::span<const Shape> inputs) const {
  const Shape& x = inputs[0];
  const double pixels = static_cast<double>(x[0] * x[1] * OutputExtent(x[2]) * OutputExtent(x[3]));
  const double forward = pixels * static_cast<double>(kernel_ * kernel_);
  return {forward, forward};
}

DTRAIN_LAYER("pooling", Pooling,
             "largest pixel or mean of each window (PyTorch MaxPool2d, AvgPool2d)");

}  // namespace dtrain
