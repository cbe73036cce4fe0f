#include "framework/strategies/sync/buckets.h"

namespace dtrain {

std::vector<Range> FusionBuckets(const GradientPieces& pieces, int64_t fusion_bytes) {
  const int64_t limit = fusion_bytes / static_cast<int64_t>(sizeof(float));
  std::vector<Range> buckets;
  for (const Range& piece : pieces.ranges) {
    if (piece.empty()) continue;
    if (!buckets.empty() && piece.end - buckets.back().begin <= limit) {
      buckets.back().end = piece.end;
    } else {
      buckets.push_back(piece);
    }
  }
  return buckets;
}

}  // namespace dtrain
