// Fusion buckets: which neighbouring gradients are reduced together.
#pragma once

#include "framework/strategies/strategy.h"

namespace dtrain {

// Joins pieces in order while the bucket stays within `fusion_bytes` (fp32); a piece larger than
// that is a bucket of its own; 0 gives one bucket a piece.  Horovod's fusion threshold (Sergeev and
// Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow", arXiv 1802.05799,
// section 3), but over the declared order instead of the order of arrival, so that all ranks agree
// without negotiation.
std::vector<Range> FusionBuckets(const GradientPieces& pieces, int64_t fusion_bytes);

}  // namespace dtrain
