// Batch normalisation (Ioffe and Szegedy 2015; PyTorch BatchNorm1d and BatchNorm2d).
//   x [N, C, H, W] or [N, C];  y the same
//   y = weight[c] (x - mean[c]) / sqrt(var[c] + eps) + bias[c]
// Training takes mean and (biased) variance of the batch at hand, N*H*W values of each channel, and
// moves the running statistics:
//   running = (1 - momentum) running + momentum batch's,  with the unbiased variance, as PyTorch
// Evaluation takes the running statistics.  They are worker state ("running_mean", "running_var"),
// no parameters.
// InferShapes throws ShapeError for other ranks.
#pragma once

#include "framework/nn/layer.h"

namespace dtrain {

class BatchNorm : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  std::vector<StateSpec> State() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;

  int64_t channels() const { return channels_; }  // C, known after InferShapes
  double eps() const { return eps_; }
  double momentum() const { return momentum_; }

 private:
  int64_t channels_ = 0;
  double eps_ = 1e-5;
  double momentum_ = 0.1;
};

}  // namespace dtrain
