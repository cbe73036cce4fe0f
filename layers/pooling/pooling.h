// Pooling: the largest or the mean of each window (PyTorch MaxPool2d, AvgPool2d; Caffe Pooling).
// Window, stride and pad have a height and a width each.
//   x [N, C, H, W]
//   y [N, C, (H + 2 pad - KH) / stride + 1, (W + 2 pad - KW) / stride + 1], rounded down as in
//     PyTorch (Caffe rounds up)
//   max       pixels outside the image are ignored; the first of equal pixels takes the gradient
//   average   divides by KH * KW; pixels outside the image count as 0 (PyTorch's count_include_pad)
// `global: true` uses the whole image as a single window: y [N, C, 1, 1] (Caffe global_pooling, PyTorch
// AdaptiveAvgPool2d(1)).
// `adaptive: [OH, OW]` gives y [N, C, OH, OW] for an image of any size (PyTorch AdaptiveAvgPool2d, AdaptiveMaxPool2d;
// framework/nn/pooling_windows.h defines the windows).
// InferShapes throws ShapeError if the window does not fit into the padded image, or if a window of max pooling has
// more than 2,147,483,647 pixels.
#pragma once

#include "framework/nn/height_width.h"
#include "framework/nn/layer.h"
#include "framework/nn/pooling_windows.h"

namespace dtrain {

class Pooling : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  const PoolingWindows* max_windows() const override { return is_max_ ? &windows_ : nullptr; }

  bool is_max() const { return is_max_; }
  const PoolingWindows& windows() const { return windows_; }  // valid after InferShapes

 private:
  void ReadWindow(config::Reader& reader);
  void CheckImage(const Shape& x) const;
  PoolingAxis AxisOf(int64_t pixels, int64_t HeightWidth::*side) const;

  bool is_max_ = true;
  bool global_ = false;
  HeightWidth adaptive_ = {0, 0};  // output size; 0: from kernel, stride, pad
  HeightWidth kernel_ = {2, 2};
  HeightWidth stride_ = {2, 2};
  HeightWidth pad_ = {0, 0};
  PoolingWindows windows_;
};

}  // namespace dtrain
