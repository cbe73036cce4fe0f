// Convolution (cross-correlation, as everywhere in deep learning; PyTorch Conv2d, Caffe
// Convolution).
//
//   y[n,o,i,j] = b[o]
//              + sum_{c,ky,kx} x[n, c, i*stride - pad + ky, j*stride - pad + kx] w[o,c,ky,kx]
//
//   x [N, C, H, W]   zero outside the image
//   w [O, C, K, K]
//   b [O]            absent when `bias: false`
//   y [N, O, (H + 2 pad - K) / stride + 1, (W + 2 pad - K) / stride + 1], rounded down
//
// InferShapes throws ShapeError when the kernel does not fit into the padded image.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class Convolution : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;

  int64_t outputs() const { return outputs_; }
  int64_t channels() const { return channels_; }  // C, known after InferShapes
  int64_t kernel() const { return kernel_; }
  int64_t stride() const { return stride_; }
  int64_t pad() const { return pad_; }
  bool has_bias() const { return has_bias_; }

 private:
  int64_t OutputExtent(int64_t extent) const { return (extent + 2 * pad_ - kernel_) / stride_ + 1; }

  int64_t outputs_ = 1;
  int64_t channels_ = 0;
  int64_t kernel_ = 1;
  int64_t stride_ = 1;
  int64_t pad_ = 0;
  bool has_bias_ = true;
  InitSpec weight_init_;
  InitSpec bias_init_;
};

}  // namespace dtrain
