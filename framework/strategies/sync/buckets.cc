#include "framework/strategies/sync/buckets.h"

namespace dtrain {

std::vector<Range> FusionBuckets(const LayerGradients& layer_gradients, int64_t fusion_bytes) {
  const int64_t limit = fusion_bytes / static_cast<int64_t>(sizeof(float));
  std::vector<Range> buckets;
  for (const Range& gradient : layer_gradients.ranges) {
    if (gradient.empty()) continue;
    if (!buckets.empty() && gradient.end - buckets.back().begin <= limit) {
      buckets.back().end = gradient.end;
    } else {
      buckets.push_back(gradient);
    }
  }
  return buckets;
}

}  // namespace dtrain
