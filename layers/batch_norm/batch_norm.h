// Batch normalisation (Ioffe and Szegedy 2015; PyTorch BatchNorm1d and BatchNorm2d).
//   x [N, C, H, W] or [N, C];  y the same
//   y = weight[c] (x - mean[c]) / sqrt(var[c] + eps) + bias[c]
// Training takes mean and (biased) variance of the batch at hand, N*H*W values of each channel, and
// moves the running statistics:
//   running = (1 - momentum) running + momentum batch's,  with the unbiased variance, as PyTorch
// Evaluation takes the running statistics.  They are worker state ("running_mean", "running_var"),
// no parameters.  A frozen layer (weights.freeze) takes and keeps them in training as well (Keras's `trainable`; a
// PyTorch module in `eval()` mode), with the gradient dx = weight[c] / sqrt(var[c] + eps) dy.
// With `sync: true` training takes mean and variance over the samples of all workers (PyTorch
// SyncBatchNorm), so that a batch gives the same statistics however it is divided.  All workers
// must take their steps together.
// InferShapes throws ShapeError for other ranks.
#pragma once

#include <algorithm>

#include "framework/nn/layer.h"

namespace dtrain {

// Of one channel; the variance is the biased one.
struct Moments {
  double mean, variance;
};

// From sums over all values: {sum of x, sum of x^2} [2, C] | values.
struct BatchStatistics {
  const double* sums;
  int64_t channels;

  constexpr double values() const { return sums[2 * channels]; }
  constexpr Moments Of(int64_t c) const {
    const double mean = sums[c] / values();
    return {mean, std::max(0.0, sums[channels + c] / values() - mean * mean)};
  }
};

// Moves a channel's running statistics towards those of a batch of so many values.
constexpr void MoveRunning(double momentum, const Moments& batch, double values, float& mean,
                           float& variance) {
  const double unbiased = values / (values - 1);
  mean = static_cast<float>((1 - momentum) * mean + momentum * batch.mean);
  variance = static_cast<float>((1 - momentum) * variance + momentum * unbiased * batch.variance);
}

class BatchNorm : public Layer {
 public:
  void Configure(config::Reader& reader) override;
  std::vector<Shape> InferShapes(std::span<const Shape> inputs) override;
  std::vector<ParamSpec> Params() const override;
  std::vector<StateSpec> State() const override;
  Cost CostOf(std::span<const Shape> inputs) const override;
  void SyncWorkers() override { sync_ = true; }
  bool syncs_workers() const override { return sync_; }
  void ForwardWithoutSamples(WorkerSums& sums, std::span<float* const> state) const override;
  void BackwardWithoutSamples(WorkerSums& sums) const override;

  int64_t channels() const { return channels_; }  // C, known after InferShapes
  double eps() const { return eps_; }
  double momentum() const { return momentum_; }
  bool sync() const { return sync_; }

  // Throws ShapeError when a channel has one value (or none) to take a variance of.
  void CheckEnough(double values) const;
  // The same for a batch of this shape, unless other workers may have more.
  void CheckEnoughIn(const Shape& x) const;

 private:
  int64_t channels_ = 0;
  double eps_ = 1e-5;
  double momentum_ = 0.1;
  bool sync_ = false;
};

}  // namespace dtrain
