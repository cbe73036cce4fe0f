// Local response normalisation across channels (Krizhevsky et al. 2012, section 3.3; Caffe LRN).
//   x [N, C, ...];  y the same
//   scale[c] = k + alpha / local_size * sum of x[c']^2 over |c' - c| <= (local_size - 1) / 2
//   y[c] = x[c] scale[c]^-beta
// Channels outside [0, C) count as 0.  Keys and defaults are Caffe's.  PyTorch's LocalResponseNorm(size, alpha, beta,
// k) is the same function for odd sizes, but its default of alpha is 1e-4.  (The paper does not divide alpha by
// local_size: AlexNet's 1e-4 is 5e-4 here.) Caffe's WITHIN_CHANNEL is not supported.  Backward, with r[c] = dy[c] y[c]
// / scale[c]:
//   dx[c] = dy[c] scale[c]^-beta - 2 alpha beta / local_size * x[c] * sum of r[c'] over the same channels
// InferShapes throws ShapeError for an input without channels.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

// The constants of the kernels: `share` is alpha / local_size, `reach` is (local_size - 1) / 2.
struct LrnFactors {
  int64_t reach;
  float k, share, beta;
};

class Lrn : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  Cost CostOf(std::span<const Shape> inputs) const override;

  int64_t local_size() const { return local_size_; }
  double alpha() const { return alpha_; }
  double beta() const { return beta_; }
  double k() const { return k_; }
  LrnFactors factors() const;

 private:
  int64_t local_size_ = 5;
  double alpha_ = 1, beta_ = 0.75, k_ = 1;
};

}  // namespace dtrain
