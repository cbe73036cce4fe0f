// Pooling: the largest or the mean of each window (PyTorch MaxPool2d, AvgPool2d; Caffe Pooling).
//   x [N, C, H, W]
//   y [N, C, (H + 2 pad - K) / stride + 1, (W + 2 pad - K) / stride + 1], rounded down as in
//     PyTorch (Caffe rounds up)
//   max       pixels outside the image do not count; of equal pixels the first takes the gradient
//   average   divides by K * K; pixels outside the image count as 0 (PyTorch's count_include_pad)
// `global: true` takes the whole image as the one window: y [N, C, 1, 1] (Caffe global_pooling,
// PyTorch AdaptiveAvgPool2d(1)).
// InferShapes throws ShapeError when the window does not fit into the padded image, or
// when a maximum would have to remember a place in more than 225 pixels.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Pooling : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  bool commutes_with_relu() const override { return is_max_; }

  bool is_max() const { return is_max_; }
  int64_t kernel_height() const { return kernel_height_; }  // of `global`: after InferShapes
  int64_t kernel_width() const { return kernel_width_; }
  int64_t stride() const { return stride_; }
  int64_t pad() const { return pad_; }

 private:
  Shape OutputOf(const Shape& x) const;

  bool is_max_ = true;
  bool global_ = false;
  int64_t kernel_height_ = 2;
  int64_t kernel_width_ = 2;
  int64_t stride_ = 2;
  int64_t pad_ = 0;
};

}  // namespace dtrain
