// Clipping where the weights are updated elsewhere: the worker clips its own mean gradient, since whoever
// applies it sees one of many, or a range of it.
#pragma once

#include <span>

#include "framework/exchange/vector_ops.h"
#include "framework/strategies/report.h"

namespace dtrain {

// Shortens the worker's part of a gradient, so that its mean over the worker's own samples is no longer
// than `clip_norm`; 0: nothing is clipped.  `report`: what part of the batch it is.
void ClipOwnGradient(double clip_norm, const StepReport& report, VectorOps& ops,
                     std::span<float> gradient);

}  // namespace dtrain
