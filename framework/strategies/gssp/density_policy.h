// DensityPolicy: the density of each group's gradients in each epoch, for GDTopK (gssp.md 5.2,
// 5.3).  The selection of entries is in framework/compress/gdtopk.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/compress/compressor.h"

namespace dtrain::gssp {

enum class DensityPolicy {
  kNone,
  // As published: the fastest group gets the lowest density and the slowest one the highest, since
  // a slow group sends fewer gradients and each of them matters more.
  kContribution,
  // Chooses densities with which each group's steps take as long as the slowest group's would at
  // the lowest density.
  //
  // gssp.md 5.3 has the target t_comp,max + t_comm(r_min), which is the same if all links are
  // equal.  If they are not, the group that computes longest need not be the one with the longest
  // steps.  With a target that the latter cannot reach, the other groups would send little and wait
  // for it nevertheless.
  kSpeedGap,
};

DensityPolicy DensityPolicyOf(const CompressConfig& config);

// All groups have this density in the first epoch.
constexpr double kDensityAtStart = 0.35;

// Holds the mean step times of the workers of a group.
struct GroupSpeed {
  int workers = 0;                    // 0: the server has no group
  double compute = 0, transfers = 0;  // times of a step, both in the same unit
  double density = kDensityAtStart;   // density with which the transfers were measured
};

// Returns the density of each group in epoch `epoch`, which counts from 1.
std::vector<double> DensitiesOf(DensityPolicy policy, const std::vector<GroupSpeed>& groups,
                                int64_t epoch);

// Converts a transfer time that was measured at density `from` to density `to`.
double TransfersAt(double transfers, double from, double to);

}  // namespace dtrain::gssp
