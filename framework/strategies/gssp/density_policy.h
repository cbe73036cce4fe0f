// How densely the workers of each group send their gradients, epoch by epoch: GDTopK (gssp.md 5.2,
// 5.3).  The selection itself is framework/compress/gdtopk.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/compress/compressor.h"

namespace dtrain::gssp {

enum class DensityPolicy {
  kNone,
  // As published: a slow group's gradients are rare, so each says more.
  kContribution,
  // Each group's steps take as long as the slowest group's would with the least density.
  kSpeedGap,
};

DensityPolicy DensityPolicyOf(const CompressConfig& config);

// In the first epoch, of all groups.
constexpr double kDensityAtStart = 0.35;

// Mean of its workers.
struct GroupSpeed {
  int workers = 0;                    // 0: the group is not there
  double compute = 0, transfers = 0;  // of a step, in any unit
  double density = kDensityAtStart;   // with which the transfers were measured
};

// Of each group in epoch `epoch`, which counts from 1.
std::vector<double> DensitiesOf(DensityPolicy policy, const std::vector<GroupSpeed>& groups,
                                int64_t epoch);

// An actor keeps whole numbers only.
constexpr double kMillion = 1e6;
inline int64_t ToMillionths(double density) { return std::llround(density * kMillion); }
inline double FromMillionths(int64_t density) { return static_cast<double>(density) / kMillion; }

}  // namespace dtrain::gssp
