#include "layers/pooling/pooling.h"

#include "framework/core/error.h"

namespace dtrain {
namespace {

constexpr int64_t kLargestPool = 15;  // of a maximum, squared: a winner's place is one byte

}  // namespace

void Pooling::Configure(config::Reader& reader) {
  const std::string method = reader.String("method", "max")
                                 .OneOf({"max", "average"})
                                 .Help("what a window becomes: its largest pixel or their mean");
  is_max_ = method == "max";
  global_ = reader.Bool("global", false).Help("the whole image is the one window");
  const int64_t kernel =
      reader.Int("kernel", 2).Min(1).Max(kLargestPool).Help("height and width of the window");
  kernel_height_ = kernel_width_ = kernel;
  stride_ =
      reader.Int("stride", kernel).Min(1).Max(kLargestWindow).Help("pixels between two windows");
  pad_ = reader.Int("pad", 0)
             .Min(0)
             .Max(kLargestWindow)
             .Help("pixels around the image; at most half the window");
  if (2 * pad_ > kernel) {
    reader.Mistake(
        "pad",
        "pad " + std::to_string(pad_) + " is more than half of kernel " + std::to_string(kernel),
        "a window must touch the image");
  }
  for (const char* key : {"kernel", "stride", "pad"}) {
    if (!global_ || !reader.Has(key)) continue;
    reader.Mistake(key, std::string(key) + " has no meaning beside global: true");
  }
}

std::vector<Shape> Pooling::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  if (x.rank() != 4) {
    throw ShapeError("an input of shape " + x.ToString() + " is no image for a window of " +
                     Shape{kernel_height_, kernel_width_}.ToString() + "; it takes [N, C, H, W]");
  }
  if (global_) {
    kernel_height_ = x[2];
    kernel_width_ = x[3];
  }
  const std::string window = Shape{kernel_height_, kernel_width_}.ToString();
  if (x[2] + 2 * pad_ < kernel_height_ || x[3] + 2 * pad_ < kernel_width_) {
    throw ShapeError("a window of " + window + " does not fit into the input " + x.ToString() +
                     " with pad " + std::to_string(pad_));
  }
  if (is_max_ && kernel_height_ * kernel_width_ > kLargestPool * kLargestPool) {
    throw ShapeError("a window of " + window + " is too large for a maximum",
                     "at most " + std::to_string(kLargestPool * kLargestPool) + " pixels");
  }
  return {OutputOf(x)};
}

Shape Pooling::OutputOf(const Shape& x) const {
  return {x[0], x[1], (x[2] + 2 * pad_ - kernel_height_) / stride_ + 1,
          (x[3] + 2 * pad_ - kernel_width_) / stride_ + 1};
}

Cost Pooling::CostOf(std::span<const Shape> inputs) const {
  const auto pixels = static_cast<double>(OutputOf(inputs[0]).count());
  const double forward = pixels * static_cast<double>(kernel_height_ * kernel_width_);
  return {forward, forward};
}

DTRAIN_LAYER("pooling", Pooling,
             "largest pixel or mean of each window (PyTorch MaxPool2d, AvgPool2d)");

}  // namespace dtrain
