// How densely the workers of each group send their gradients, epoch by epoch: GDTopK (gssp.md 5.2,
// 5.3).  The selection itself is framework/compress/gdtopk.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/compress/compressor.h"

namespace dtrain::gssp {

enum class DensityPolicy {
  kNone,
  // As published: a slow group's gradients are rare, so each says more.
  kContribution,
  // Each group's steps take as long as the slowest group's would with the least density.
  //
  // gssp.md 5.3 says: as long as t_comp,max + t_comm(r_min).  That is the same where all links are
  // alike.  Where they are not, the group that computes longest need not be the one whose steps take
  // longest whatever it sends; a target below what that one can reach would leave the others
  // waiting for it with little sent.
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

// What transfers that took so long at density `from` take at density `to`.
double TransfersAt(double transfers, double from, double to);

}  // namespace dtrain::gssp
