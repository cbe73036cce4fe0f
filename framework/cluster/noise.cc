#include "framework/cluster/noise.h"

#include <cmath>

#include "framework/core/random.h"

namespace dtrain {
namespace {

constexpr uint64_t kPauseIndex = 4;  // Normal(0) uses the numbers 0 to 3

Random NoiseOf(uint64_t seed, int worker, int64_t step) {
  return Random(seed, Purpose::kJitter, static_cast<uint64_t>(worker), static_cast<uint64_t>(step));
}

}  // namespace

double LogDeviationOf(double relative_deviation) {
  return std::sqrt(std::log1p(relative_deviation * relative_deviation));
}

double RelativeDeviationOf(double log_deviation) {
  return std::sqrt(std::expm1(log_deviation * log_deviation));
}

double JitterFactor(double relative_deviation, uint64_t seed, int worker, int64_t step) {
  if (relative_deviation == 0) return 1;
  const double s = LogDeviationOf(relative_deviation);
  return std::exp(s * NoiseOf(seed, worker, step).Normal(0) - s * s / 2);
}

bool PausesIn(double probability, uint64_t seed, int worker, int64_t step) {
  return probability > 0 && NoiseOf(seed, worker, step).Uniform(kPauseIndex) < probability;
}

double StreamShare(double relative_deviation, uint64_t seed, Rank from, Rank to, int64_t message) {
  if (relative_deviation == 0) return 1;
  const uint64_t pair = (static_cast<uint64_t>(from) << 32) | static_cast<uint64_t>(to);
  const Random random(seed, Purpose::kShare, pair, static_cast<uint64_t>(message));
  return std::exp(LogDeviationOf(relative_deviation) * random.Normal(0));
}

}  // namespace dtrain
