#include "framework/strategies/gssp/density_policy.h"

#include <algorithm>
#include <array>
#include <limits>

namespace dtrain::gssp {
namespace {

constexpr double kDensityMin = 0.004, kDensityMax = 0.35;

// The rows are the fastest, middle and slowest groups.  The columns are epochs 2, 3, 4, and all
// later ones.
constexpr std::array kContribution = {std::array{0.25, 0.0625, 0.015625, 0.004},
                                      std::array{0.3, 0.09, 0.027, 0.0081},
                                      std::array{0.35, 0.1225, 0.042875, 0.015}};

std::vector<double> ByContribution(const std::vector<GroupSpeed>& groups, int64_t epoch) {
  double fastest = std::numeric_limits<double>::infinity(), slowest = 0;
  for (const GroupSpeed& group : groups) {
    if (group.workers == 0) continue;
    fastest = std::min(fastest, group.compute + group.transfers);
    slowest = std::max(slowest, group.compute + group.transfers);
  }
  std::vector<double> densities;
  for (const GroupSpeed& group : groups) {
    const double time = group.compute + group.transfers;
    int kind = 1;
    if (time == fastest && fastest < slowest) kind = 0;
    if (time == slowest && fastest < slowest) kind = 2;
    densities.push_back(epoch < 2 ? kDensityAtStart
                                  : kContribution[kind][std::min<int64_t>(epoch, 5) - 2]);
  }
  return densities;
}

std::vector<double> BySpeedGap(const std::vector<GroupSpeed>& groups, int64_t epoch) {
  double target = 0;
  for (const GroupSpeed& group : groups) {
    target =
        std::max(target, group.compute + TransfersAt(group.transfers, group.density, kDensityMin));
  }
  std::vector<double> densities;
  for (const GroupSpeed& group : groups) {
    if (epoch < 2 || group.transfers <= 0) {
      densities.push_back(group.density);
      continue;
    }
    const double at_target =
        ((target - group.compute) * (1 + 2 * group.density) / group.transfers - 1) / 2;
    // The density moves half of the way, so at most down to half, and at most up to the double,
    // since measured times are noisy.
    const double smoothed =
        0.5 * group.density + 0.5 * std::clamp(at_target, kDensityMin, kDensityMax);
    const double limited = std::min(smoothed, group.density * 2);
    densities.push_back(std::clamp(limited, kDensityMin, kDensityMax));
  }
  return densities;
}

}  // namespace

DensityPolicy DensityPolicyOf(const CompressConfig& config) {
  if (!config.on()) return DensityPolicy::kNone;
  return config.policy == "speed_gap" ? DensityPolicy::kSpeedGap : DensityPolicy::kContribution;
}

// A gradient of density r takes 8 bytes per entry on its way up, the weights 4 bytes per element on
// their way down, so transfer times are assumed to be proportional to 1 + 2 r.
double TransfersAt(double transfers, double from, double to) {
  return from == to ? transfers : transfers * (1 + 2 * to) / (1 + 2 * from);
}

std::vector<double> DensitiesOf(DensityPolicy policy, const std::vector<GroupSpeed>& groups,
                                int64_t epoch) {
  switch (policy) {
    case DensityPolicy::kNone:
      return std::vector<double>(groups.size(), 1.0);
    case DensityPolicy::kContribution:
      return ByContribution(groups, epoch);
    case DensityPolicy::kSpeedGap:
      return BySpeedGap(groups, epoch);
  }
  return {};
}

}  // namespace dtrain::gssp
