#include "framework/exchange/worker_clip.h"

#include <cmath>

namespace dtrain {
namespace {

// Returns this worker's share of the batch.
double ShareOf(const StepReport& report) {
  const bool by_terms = report.global_terms > 0;
  const int64_t all = by_terms ? report.global_terms : report.global_samples;
  if (all == 0) return 1;
  return static_cast<double>(by_terms ? report.terms : report.samples) / static_cast<double>(all);
}

void Shorten(float scale, VectorOps& ops, std::span<float> gradient) {
  if (scale != 1) ops.Scale(gradient.data(), scale, static_cast<int64_t>(gradient.size()));
}

double SumOfSquares(VectorOps& ops, std::span<const float> gradient) {
  return ops.SumOfSquares(gradient.data(), static_cast<int64_t>(gradient.size()));
}

}  // namespace

void ClipOwnGradient(double clip_norm, const StepReport& report, VectorOps& ops,
                     std::span<float> gradient) {
  if (clip_norm == 0) return;
  const double share = ShareOf(report);
  if (share == 0) return;
  const double squares = SumOfSquares(ops, gradient);
  Shorten(ClipScale(clip_norm, squares / (share * share)), ops, gradient);
}

void ClipBeforeMomentum(double clip_norm, int workers, VectorOps& ops, std::span<float> gradient) {
  if (clip_norm == 0) return;
  Shorten(ClipScale(clip_norm / std::sqrt(workers), SumOfSquares(ops, gradient)), ops, gradient);
}

}  // namespace dtrain
