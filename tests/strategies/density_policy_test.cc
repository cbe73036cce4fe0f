// Tests how GSSP chooses the densities of its groups: the published table number by number, and the rules of speed_gap.
#include "framework/strategies/gssp/density_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtrain::gssp {
namespace {

using Densities = std::vector<double>;

GroupSpeed Group(double compute, double transfers = 0, double density = kDensityAtStart) {
  return {.workers = 4, .compute = compute, .transfers = transfers, .density = density};
}

TEST(Contribution, IsThePublishedTable) {
  const std::vector<GroupSpeed> groups = {Group(4), Group(1), Group(2), Group(3)};
  const std::vector<Densities> expected = {
      {0.35, 0.35, 0.35, 0.35},       {0.35, 0.25, 0.3, 0.3},
      {0.1225, 0.0625, 0.09, 0.09},   {0.042875, 0.015625, 0.027, 0.027},
      {0.015, 0.004, 0.0081, 0.0081}, {0.015, 0.004, 0.0081, 0.0081}};
  for (size_t epoch = 1; epoch <= expected.size(); ++epoch) {
    EXPECT_EQ(DensitiesOf(DensityPolicy::kContribution, groups, static_cast<int64_t>(epoch)),
              expected[epoch - 1])
        << "epoch " << epoch;
  }
}

// A group's speed is its compute and transfer time, without waiting.
TEST(Contribution, AGroupIsAsSlowAsItsSteps) {
  const std::vector<GroupSpeed> groups = {Group(1, 5), Group(3)};
  EXPECT_EQ(DensitiesOf(DensityPolicy::kContribution, groups, 2), (Densities{0.35, 0.25}));
  const std::vector<GroupSpeed> short_ones = {Group(0.1, 0.5),
                                              Group(0.3)};  // independent of the unit of time
  EXPECT_EQ(DensitiesOf(DensityPolicy::kContribution, short_ones, 2), (Densities{0.35, 0.25}));
}

TEST(Contribution, EqualGroupsAreInTheMiddle) {
  EXPECT_EQ(DensitiesOf(DensityPolicy::kContribution, {Group(2), Group(2)}, 3),
            (Densities{0.09, 0.09}));
}

TEST(Contribution, AGroupThatIsNotThereChangesNothing) {
  std::vector<GroupSpeed> groups = {Group(1), Group(2), Group(0)};
  groups[2].workers = 0;
  const Densities densities = DensitiesOf(DensityPolicy::kContribution, groups, 2);
  EXPECT_EQ(densities[0], 0.25);
  EXPECT_EQ(densities[1], 0.35);
}

// Returns a step's time at another density, by the policy's own model of transfers.
double TimeAt(const GroupSpeed& group, double density) {
  return group.compute + group.transfers * (1 + 2 * density) / (1 + 2 * group.density);
}

TEST(SpeedGap, ChangesByAFactorOfTwoAtMostAndStaysWithinItsBounds) {
  std::vector<GroupSpeed> groups = {Group(1, 2), Group(2, 2), Group(4, 2)};
  for (int64_t epoch = 2; epoch < 20; ++epoch) {
    const Densities densities = DensitiesOf(DensityPolicy::kSpeedGap, groups, epoch);
    for (size_t g = 0; g < groups.size(); ++g) {
      EXPECT_LE(densities[g], 0.35);
      EXPECT_GE(densities[g], 0.004);
      EXPECT_LE(densities[g], 2 * groups[g].density);
      EXPECT_GE(densities[g], groups[g].density / 2);
      groups[g].transfers = TimeAt(groups[g], densities[g]) - groups[g].compute;
      groups[g].density = densities[g];
    }
  }
  // The slowest group sends least, the fastest one most.
  EXPECT_NEAR(groups[2].density, 0.004, 1e-3);
  EXPECT_EQ(groups[0].density, 0.35);
}

// Compute takes 1 and 1.3 and transfers are long enough: the steps of both groups take as long as those of the slower
// one at the least density.
TEST(SpeedGap, BringsTheStepsOfAllGroupsTogether) {
  std::vector<GroupSpeed> groups = {Group(1, 1.7), Group(1.3, 1.7)};
  const double before = TimeAt(groups[1], 0.35) / TimeAt(groups[0], 0.35);
  for (int64_t epoch = 2; epoch < 30; ++epoch) {
    const Densities densities = DensitiesOf(DensityPolicy::kSpeedGap, groups, epoch);
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].transfers = TimeAt(groups[g], densities[g]) - groups[g].compute;
      groups[g].density = densities[g];
    }
  }
  const double gap = TimeAt(groups[1], groups[1].density) / TimeAt(groups[0], groups[0].density);
  EXPECT_NEAR(gap, 1, 1e-3);
  EXPECT_GT(before, 1.1);
}

// Group 1 computes fast and has long transfers.  If group 0, with the longest compute, were the target of all, it would
// send little and wait for group 1.
TEST(SpeedGap, AimsAtTheLongestStepWhereLinksDiffer) {
  const Densities densities =
      DensitiesOf(DensityPolicy::kSpeedGap, {Group(4, 0.1), Group(1, 10)}, 2);
  EXPECT_EQ(densities[0], 0.35);
  EXPECT_NEAR(densities[1], 0.5 * 0.35 + 0.5 * 0.004, 1e-9);
}

// Moves half-way: the density is 0.1, the target is 0.004.
TEST(SpeedGap, GoesHalfWay) {
  const std::vector<GroupSpeed> groups = {Group(5, 1, 0.1), Group(1, 1, 0.1)};
  const Densities densities = DensitiesOf(DensityPolicy::kSpeedGap, groups, 2);
  EXPECT_DOUBLE_EQ(densities[0], 0.5 * 0.1 + 0.5 * 0.004);
  EXPECT_DOUBLE_EQ(
      densities[1],
      0.2);  // half-way to 0.35 is 0.225; the limit is twice the old density, which is less
  // This holds in any unit of time and at any size of a group.
  std::vector<GroupSpeed> short_ones = {Group(0.5, 0.1, 0.1), Group(0.1, 0.1, 0.1)};
  short_ones[1].workers = 1;
  const Densities same = DensitiesOf(DensityPolicy::kSpeedGap, short_ones, 2);
  EXPECT_DOUBLE_EQ(same[0], densities[0]);
  EXPECT_DOUBLE_EQ(same[1], densities[1]);
}

TEST(SpeedGap, StaysInTheFirstEpochAndWithoutTransfers) {
  EXPECT_EQ(DensitiesOf(DensityPolicy::kSpeedGap, {Group(1, 1), Group(9, 1)}, 1),
            (Densities{0.35, 0.35}));
  EXPECT_EQ(DensitiesOf(DensityPolicy::kSpeedGap, {Group(1, 0, 0.1)}, 5), (Densities{0.1}));
}

}  // namespace
}  // namespace dtrain::gssp
