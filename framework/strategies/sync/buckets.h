// Fusion buckets are neighbouring gradients that are reduced together.
#pragma once

#include "framework/strategies/strategy.h"

namespace dtrain {

// Joins the layers' gradients in order while the bucket stays within `fusion_bytes` (fp32).  A
// layer's gradient that is larger is a bucket of its own; 0 gives one bucket per layer.  This is
// Horovod's fusion threshold (Sergeev and Del Balso, "Horovod: fast and easy distributed deep
// learning in TensorFlow", arXiv 1802.05799, section 3), but it uses the declared order instead of
// the order of arrival, so that all ranks agree without negotiation.
std::vector<Range> FusionBuckets(const LayerGradients& layer_gradients, int64_t fusion_bytes);

}  // namespace dtrain
