#include "framework/strategies/ps/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrain::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Admission, LetsNobodyLeadByMoreThanTheBound) {
  Admission admission(2, 2);
  EXPECT_THAT(admission.Finish(0, true), ElementsAre(0));
  EXPECT_THAT(admission.Finish(0, true), ElementsAre(0));
  EXPECT_THAT(admission.Finish(0, true), IsEmpty());
  EXPECT_THAT(admission.Finish(1, true), ElementsAre(0, 1));
  EXPECT_EQ(admission.lead_max(), 2);
}

TEST(Admission, AStepWithoutARequestReleasesOthers) {
  Admission admission(2, 0);
  EXPECT_THAT(admission.Finish(0, true), IsEmpty());
  EXPECT_THAT(admission.Finish(1, false), ElementsAre(0));
  EXPECT_THAT(admission.Request(1), ElementsAre(1));
}

TEST(Admission, AKeptRequestIsGrantedOnce) {
  Admission admission(2, 0);
  EXPECT_THAT(admission.Finish(0, false), IsEmpty());
  EXPECT_THAT(admission.Request(0), IsEmpty());
  EXPECT_THAT(admission.Finish(1, true), ElementsAre(0, 1));
  EXPECT_THAT(admission.Finish(1, true), IsEmpty());
}

TEST(Admission, WithoutABoundNobodyWaits) {
  Admission admission(2, kNoBound);
  for (int step = 0; step < 1000; ++step) ASSERT_THAT(admission.Finish(0, true), ElementsAre(0));
  EXPECT_EQ(admission.lead_max(), 1000);
  EXPECT_EQ(admission.Describe(), "clocks 1000 0, waiting {}, no bound");
}

TEST(Admission, KeepsRequestsInSavedState) {
  Admission admission(2, 1), loaded(2, 1);
  for (int step = 0; step < 2; ++step) admission.Finish(0, true);
  LoadState(loaded, SaveState(admission));
  EXPECT_EQ(loaded.Describe(), "clocks 2 0, waiting {0}, bound 1");
  EXPECT_EQ(loaded.lead_max(), 1);
  EXPECT_THAT(loaded.Finish(1, false), ElementsAre(0));
}

TEST(Admission, DescribesManyByTheFirst) {
  Admission admission(12, 0);
  for (int worker = 1; worker < 12; ++worker) admission.Finish(worker, true);
  EXPECT_EQ(admission.Describe(),
            "clocks 0..1, slowest 0 (0), 1 (1), 2 (1), waiting {1, 2, 3, 4, 5, 6, 7, 8, ...} (11), "
            "bound 0");
}

TEST(AdmissionDeathTest, NobodyAsksTwice) {
  Admission admission(2, 0);
  admission.Finish(0, true);
  EXPECT_DEATH(admission.Request(0), "worker 0 asks twice; clocks 1 0, waiting \\{0\\}, bound 0");
  EXPECT_DEATH(admission.Finish(0, true), "worker 0 finishes a step that it may not start");
}

}  // namespace
}  // namespace dtrain::ps
