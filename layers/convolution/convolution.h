// Convolution, strictly cross-correlation (PyTorch Conv2d, Caffe Convolution).  Window, stride, pad and dilation have a
// height and a width each.
//
//   y[n,o,i,j] = b[o]
//              + sum_{c,k,l} x[n, g*C/G + c, i*stride - pad + k*dilation, j*stride - pad + l*dilation]
//                             w[o,c,k,l],                     where g = o / (O/G) is output o's group
//
//   x [N, C, H, W]   zero outside the image
//   w [O, C/G, KH, KW]
//   b [O]            absent when `bias: false`
//   y [N, O, (H + 2 pad - (KH - 1) dilation - 1) / stride + 1, ...], rounded down
//
// G groups divide inputs and outputs into G independent parts of equal size; G = C is a depthwise convolution.
// InferShapes throws ShapeError if the window does not fit into the padded image, or if the groups do not divide the
// channels.
#pragma once

#include "framework/nn/height_width.h"
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
  int64_t groups() const { return groups_; }
  const HeightWidth& kernel() const { return kernel_; }
  const HeightWidth& stride() const { return stride_; }
  const HeightWidth& pad() const { return pad_; }
  const HeightWidth& dilation() const { return dilation_; }
  bool has_bias() const { return has_bias_; }

  // Returns true if there is one group, no dilation, and height and width are equal, as most of our own kernels
  // require.
  bool IsPlainSquare() const {
    return groups_ == 1 && dilation_ == HeightWidth{} && kernel_.square() && stride_.square() &&
           pad_.square();
  }

 private:
  // Returns the extent of a window in pixels, with its dilation.
  HeightWidth Reach() const {
    return {(kernel_.height - 1) * dilation_.height + 1, (kernel_.width - 1) * dilation_.width + 1};
  }
  Shape OutputOf(const Shape& x) const;

  int64_t outputs_ = 1;
  int64_t channels_ = 0;
  int64_t groups_ = 1;
  HeightWidth kernel_, stride_, dilation_;
  HeightWidth pad_ = {0, 0};
  bool has_bias_ = true;
  InitSpec weight_init_;
  InitSpec bias_init_;
};

}  // namespace dtrain
