// Clips the gradient of a worker at the worker itself.
#pragma once

#include <span>

#include "framework/exchange/vector_ops.h"
#include "framework/strategies/report.h"

namespace dtrain {

// Clips the gradient of a worker whose weights are updated by servers, which see only one worker's
// gradient or a shard of it.  Scales `gradient` so that the norm of its mean over the worker's own
// samples is at most `clip_norm`; 0: no clipping.  `report` has the worker's share of the batch.
void ClipOwnGradient(double clip_norm, const StepReport& report, VectorOps& ops,
                     std::span<float> gradient);

// Clips the gradient of a worker that keeps momentum (CompressConfig::clip_norm) to clip_norm /
// sqrt(workers); 0: no clipping.  If the workers' gradients are independent, the norm of their sum
// is then about clip_norm.
void ClipBeforeMomentum(double clip_norm, int workers, VectorOps& ops, std::span<float> gradient);

}  // namespace dtrain
