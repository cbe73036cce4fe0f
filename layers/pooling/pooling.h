// Pooling: the largest or the mean of each window (PyTorch MaxPool2d, AvgPool2d; Caffe Pooling).
//   x [N, C, H, W]
//   y [N, C, (H + 2 pad - K) / stride + 1, (W + 2 pad - K) / stride + 1], rounded down as in
//   PyTorch
//     (Caffe rounds up)
//   max       pixels outside the image do not count; of equal pixels the first takes the gradient
//   average   divides by K * K; pixels outside the image count as 0 (PyTorch's count_include_pad)
// InferShapes throws ShapeError when the window does not fit into the padded image.
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
  int64_t kernel() const { return kernel_; }
  int64_t stride() const { return stride_; }
  int64_t pad() const { return pad_; }

 private:
  int64_t OutputExtent(int64_t extent) const { return (extent + 2 * pad_ - kernel_) / stride_ + 1; }

  bool is_max_ = true;
  int64_t kernel_ = 2;
  int64_t stride_ = 2;
  int64_t pad_ = 0;
};

}  // namespace dtrain
