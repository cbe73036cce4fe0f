// Gradient accumulation: a share of a batch computed in parts, one behind the other, whose
// gradients add up to the share's.  Activations then need the memory of one part.
//
// The sum is that of the whole share up to rounding.  Random numbers are keyed by a sample's place
// in the global batch, so dropout and augmentation do not change.  Batch normalisation sees the
// parts: each has statistics of its own, and moves the running ones.
#pragma once

#include "framework/nn/net.h"

namespace dtrain {

// Samples of the largest part; the others have as many or one less.
int64_t LargestPart(int64_t samples, int64_t parts);

// The net's step in `parts` parts.  Gradients are announced to `sink` with the last one only.
StepResult StepInParts(Net& net, int64_t parts, const float* weights, float* gradients,
                       float* state, const NetInput& input, GradientSink* sink);

// The net compiled for every part of a share of so many samples.
void PrepareParts(Net& net, int64_t samples, int64_t parts);

}  // namespace dtrain
