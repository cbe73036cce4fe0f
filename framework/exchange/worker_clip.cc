#include "framework/exchange/worker_clip.h"

#include <cmath>

namespace dtrain {
namespace {

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
  const double share = report.share();
  if (share == 0) return;
  const double squares = SumOfSquares(ops, gradient);
  Shorten(ClipScale(clip_norm, squares / (share * share)), ops, gradient);
}

void ClipBeforeMomentum(double clip_norm, int workers, VectorOps& ops, std::span<float> gradient) {
  if (clip_norm == 0) return;
  Shorten(ClipScale(clip_norm / std::sqrt(workers), SumOfSquares(ops, gradient)), ops, gradient);
}

}  // namespace dtrain
