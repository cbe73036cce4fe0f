// Clipping at the worker, of its own gradient.
#pragma once

#include <span>

#include "framework/exchange/vector_ops.h"
#include "framework/strategies/report.h"

namespace dtrain {

// Where the weights are updated elsewhere, since whoever applies the gradient sees one of many, or a range of
// it: shortens the worker's part, so that its mean over the worker's own samples is no longer than
// `clip_norm`; 0: nothing is clipped.  `report`: what part of the batch it is.
void ClipOwnGradient(double clip_norm, const StepReport& report, VectorOps& ops,
                     std::span<float> gradient);

// Where the worker keeps momentum (CompressConfig::clip_norm): shortens its part of the gradient to
// clip_norm / sqrt(workers); 0: nothing is clipped.  Parts that point anywhere are then together about as long
// as clip_norm.
void ClipBeforeMomentum(double clip_norm, int workers, VectorOps& ops, std::span<float> gradient);

}  // namespace dtrain
