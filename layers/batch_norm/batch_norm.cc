#include "layers/batch_norm/batch_norm.h"

#include "framework/core/error.h"
#include "framework/nn/kernel.h"

namespace dtrain {

void BatchNorm::Configure(config::Reader& reader) {
  eps_ = reader.Number("eps", 1e-5).Above(0).Help("added to the variance, against division by 0");
  momentum_ = reader.Number("momentum", 0.1)
                  .Min(0)
                  .Max(1)
                  .Help("weight of the batch's statistics in the updated running ones");
  sync_ =
      reader.Bool("sync", false).Help("train on mean and variance over the samples of all workers");
}

std::vector<Shape> BatchNorm::InferShapes(std::span<const Shape> inputs) {
  const Shape& x = inputs[0];
  if (x.rank() != 4 && x.rank() != 2) {
    throw ShapeError("an input of shape " + x.ToString() +
                     " has no channels to normalise; it takes [N, C, H, W] or [N, C]");
  }
  channels_ = x[1];
  return {x};
}

std::vector<ParamSpec> BatchNorm::Params() const {
  return {{"weight", {channels_}, {"constant", 1}}, {"bias", {channels_}, {"constant", 0}}};
}

std::vector<StateSpec> BatchNorm::State() const {
  return {{"running_mean", {channels_}, 0}, {"running_var", {channels_}, 1}};
}

// Counts these operations per element: mean 1, variance 3, y 3 forward; two sums 4, dx 6 backward.
Cost BatchNorm::CostOf(std::span<const Shape> inputs) const {
  const auto elements = static_cast<double>(inputs[0].count());
  return {7 * elements, 10 * elements};
}

void BatchNorm::CheckEnough(double values) const {
  if (values > 1) return;
  throw ShapeError(
      "batch_norm cannot train on a batch with one value a channel: that has no variance",
      "an epoch's last batch has the samples that remain: choose `batch`, or "
      "`data.limit`, so that each worker gets more than one of them");
}

void BatchNorm::CheckEnoughIn(const Shape& x) const {
  if (!sync_) CheckEnough(static_cast<double>(x.count() / x[1]));
}

void BatchNorm::ForwardWithoutSamples(WorkerSums& sums, std::span<float* const> state) const {
  std::vector<double> all(static_cast<size_t>(2 * channels_ + 1));
  sums.Sum(all);
  const BatchStatistics batch = {all.data(), channels_};
  if (batch.values() == 0) return;  // no worker has samples in this part of a short batch
  CheckEnough(batch.values());
  for (int64_t c = 0; c < channels_; ++c) {
    MoveRunning(momentum_, batch.Of(c), batch.values(), state[0][c], state[1][c]);
  }
}

void BatchNorm::BackwardWithoutSamples(WorkerSums& sums) const {
  std::vector<double> none(static_cast<size_t>(2 * channels_));
  sums.Sum(none);
}

namespace {
DTRAIN_LAYER(
    "batch_norm", BatchNorm,
    "channels normalised to mean 0, deviation 1, then scaled (PyTorch BatchNorm2d); a frozen "
    "layer uses its running statistics and does not update them");
}

}  // namespace dtrain
