// Batch normalisation (Ioffe and Szegedy 2015; PyTorch BatchNorm1d and BatchNorm2d).
//   x [N, C, H, W] or [N, C];  y the same
//   y = weight[c] (x - mean[c]) / sqrt(var[c] + eps) + bias[c]
// Training uses the mean and (biased) variance of the current batch, over N*H*W values of each channel, and updates the
// running statistics:
//   running = (1 - momentum) running + momentum batch,  with the unbiased variance, as in PyTorch
// Evaluation uses the running statistics; an estimate of them (Mode::kEstimate) the batch's, which become the running
// ones.  They are state of each worker ("running_mean", "running_var"), not parameters.  A frozen layer
// (weights.freeze) uses them in training too and does not update them (Keras's `trainable: False`; a PyTorch module in
// `eval()` mode); its gradient is dx = weight[c] / sqrt(var[c] + eps) dy.  With `sync: true` training uses the mean and
// variance over the samples of all workers (PyTorch SyncBatchNorm), so the statistics do not depend on how a batch is
// divided.  Then all workers must run their steps in lockstep.  InferShapes throws ShapeError for a tensor of another
// rank than 2 or 4.
#pragma once

#include <algorithm>

#include "framework/nn/layer.h"

namespace dtrain {

// The mean and biased variance of one channel.
struct Moments {
  double mean, variance;
};

// The statistics of a batch, from an array of doubles: sum of x [C], sum of x^2 [C], number of values per channel [1].
struct BatchStatistics {
  const double* sums;
  int64_t channels;

  constexpr double values() const { return sums[2 * channels]; }
  constexpr Moments Of(int64_t c) const {
    const double mean = sums[c] / values();
    return {mean, std::max(0.0, sums[channels + c] / values() - mean * mean)};
  }
};

// Updates a channel's running statistics with those of a batch of `values` values per channel.
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

  // Throws ShapeError if a channel has fewer than two values, which have no variance.
  void CheckEnough(double values) const;
  // Does the same for a batch of shape x, unless `sync` is set, since other workers may have more values.
  void CheckEnoughIn(const Shape& x) const;

 private:
  int64_t channels_ = 0;
  double eps_ = 1e-5;
  double momentum_ = 0.1;
  bool sync_ = false;
};

}  // namespace dtrain
