#include "framework/sim/stream_share.h"

#include <cmath>

#include "framework/core/random.h"
#include "framework/sim/step_noise.h"

namespace dtrain {

double StreamShare(double relative_deviation, uint64_t seed, Rank from, Rank to, int64_t message) {
  if (relative_deviation == 0) return 1;
  const uint64_t pair = (static_cast<uint64_t>(from) << 32) | static_cast<uint64_t>(to);
  const Random random(seed, Purpose::kShare, pair, static_cast<uint64_t>(message));
  return std::exp(LogDeviationOf(relative_deviation) * random.Normal(0));
}

}  // namespace dtrain
