#include "framework/exchange/worker_clip.h"

#include <cmath>

namespace dtrain {
namespace {

// The part of a batch's mean gradient that is this worker's.
double ShareOf(const StepReport& report) {
  const bool by_terms = report.global_terms > 0;
  const int64_t all = by_terms ? report.global_terms : report.global_samples;
  if (all == 0) return 1;
  return static_cast<double>(by_terms ? report.terms : report.samples) / static_cast<double>(all);
}

}  // namespace

void ClipOwnGradient(double clip_norm, const StepReport& report, VectorOps& ops,
                     std::span<float> gradient) {
  if (clip_norm == 0) return;
  const double share = ShareOf(report);
  if (share == 0) return;
  const auto n = static_cast<int64_t>(gradient.size());
  const double squares = ops.SumOfSquares(gradient.data(), n);
  const float scale = ClipScale(clip_norm, squares / (share * share));
  if (scale != 1) ops.Scale(gradient.data(), scale, n);
}

void ClipBeforeMomentum(double clip_norm, int workers, VectorOps& ops, std::span<float> gradient) {
  if (clip_norm == 0) return;
  const auto n = static_cast<int64_t>(gradient.size());
  const float scale =
      ClipScale(clip_norm / std::sqrt(workers), ops.SumOfSquares(gradient.data(), n));
  if (scale != 1) ops.Scale(gradient.data(), scale, n);
}

}  // namespace dtrain
