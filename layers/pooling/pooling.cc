#include "layers/pooling/pooling.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

constexpr int64_t kMostPlaces = INT32_MAX;  // pixels in a window of max pooling

}  // namespace

void Pooling::Configure(config::Reader& reader) {
  const std::string method = reader.String("method", "max")
                                 .OneOf({"max", "average"})
                                 .Help("output of a window: its largest pixel or the mean");
  is_max_ = method == "max";
  global_ = reader.Bool("global", false).Help("use the whole image as a single window");
  adaptive_ = ReadHeightWidth(
      reader,
      {.key = "adaptive",
       .default_value = {0, 0},
       .most = kLargestExtent,
       .help =
           "size of the output for images of any size; 0: it follows from kernel, stride and pad"});
  if ((adaptive_.height == 0) != (adaptive_.width == 0)) {
    reader.AddError("adaptive", "adaptive " + adaptive_.ToString() + " has a side without pixels");
  }
  ReadWindow(reader);
  const bool adaptive = adaptive_.height > 0;
  const std::string other = global_ ? "global: true" : "adaptive";
  for (const char* key : {"adaptive", "kernel", "stride", "pad"}) {
    const bool has_no_meaning = global_ || (adaptive && key != std::string("adaptive"));
    if (!has_no_meaning || !reader.Has(key)) continue;
    reader.AddError(key, fmt::format("{} has no meaning beside {}", key, other), "",
                    {"global", "adaptive"});
  }
}

void Pooling::ReadWindow(config::Reader& reader) {
  kernel_ = ReadHeightWidth(reader, {.key = "kernel",
                                     .default_value = {2, 2},
                                     .least = 1,
                                     .most = kLargestWindow,
                                     .help = "size of the window"});
  stride_ = ReadHeightWidth(reader, {.key = "stride",
                                     .default_value = kernel_,
                                     .least = 1,
                                     .most = kLargestWindow,
                                     .help = "pixels between two windows"});
  pad_ = ReadHeightWidth(reader, {.key = "pad",
                                  .default_value = {0, 0},
                                  .most = kLargestWindow,
                                  .help = "pixels around the image, at most half the window"});
  if (2 * pad_.height > kernel_.height || 2 * pad_.width > kernel_.width) {
    reader.AddError(
        "pad",
        fmt::format("pad {} is more than half of kernel {}", pad_.ToString(), kernel_.ToString()),
        "a window must touch the image", {"kernel"});
  }
}

std::vector<Shape> Pooling::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  CheckImage(x);
  windows_ = {AxisOf(x[2], &HeightWidth::height), AxisOf(x[3], &HeightWidth::width)};
  const PoolingAxis &rows = windows_.rows, &columns = windows_.columns;
  if (is_max_ && rows.kernel > kMostPlaces / columns.kernel) {
    throw ShapeError(fmt::format("a window of {} is too large for a maximum",
                                 Shape{rows.kernel, columns.kernel}.ToString()),
                     fmt::format("use a kernel of at most {} pixels", kMostPlaces));
  }
  return {{x[0], x[1], rows.windows, columns.windows}};
}

void Pooling::CheckImage(const Shape& x) const {
  const bool any_size = global_ || adaptive_.height > 0;
  const std::string window = Shape{kernel_.height, kernel_.width}.ToString();
  if (x.rank() != 4) {
    throw ShapeError(fmt::format("an input of shape {} is no image{}; it takes [N, C, H, W]",
                                 x.ToString(), any_size ? "" : " for a window of " + window));
  }
  if (any_size) return;
  if (x[2] + 2 * pad_.height < kernel_.height || x[3] + 2 * pad_.width < kernel_.width) {
    throw ShapeError(fmt::format("a window of {} does not fit into the input {} with pad {}",
                                 window, x.ToString(), pad_.ToString()),
                     "use a smaller kernel, or a larger pad");
  }
}

// If adaptive windows divide the pixels evenly, the axis is described as windows of a given size.
PoolingAxis Pooling::AxisOf(int64_t pixels, int64_t HeightWidth::*side) const {
  if (global_) return {.pixels = pixels, .windows = 1, .kernel = pixels};
  const int64_t windows = adaptive_.*side;
  if (windows == 0) {
    const int64_t kernel = kernel_.*side, stride = stride_.*side, pad = pad_.*side;
    return {.pixels = pixels,
            .windows = (pixels + 2 * pad - kernel) / stride + 1,
            .kernel = kernel,
            .stride = stride,
            .pad = pad};
  }
  const int64_t share = pixels / windows;
  if (pixels % windows == 0) {
    return {.pixels = pixels, .windows = windows, .kernel = share, .stride = share};
  }
  return {.pixels = pixels,
          .windows = windows,
          .kernel = std::min(share + 2, pixels),
          .adaptive = true};
}

Cost Pooling::CostOf(std::span<const Shape> inputs) const {
  const Shape& x = inputs[0];
  const auto outputs =
      static_cast<double>(x[0] * x[1] * windows_.rows.windows * windows_.columns.windows);
  const double forward = outputs * static_cast<double>(windows_.MostPixels());
  return {forward, forward};
}

DTRAIN_LAYER("pooling", Pooling,
             "largest pixel or mean of each window (PyTorch MaxPool2d, AvgPool2d)");

}  // namespace dtrain
