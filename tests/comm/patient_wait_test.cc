#include "framework/comm/patient_wait.h"

#include <gtest/gtest.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

// Returns after how many looks, one a second, a rank gives up on `peer`.
int LooksOn(Rank peer, Nanos& now) {
  PatientWait wait(peer);
  const Nanos begin = WallNow();
  now = begin;
  for (int looks = 1; looks < 10'000; ++looks) {
    try {
      wait.LookAt(now += kSecond);
    } catch (const StalledError& error) {
      EXPECT_NE(std::string(error.what()).find("did not answer for"), std::string::npos);
      return looks;
    }
  }
  return 0;
}

TEST(PatientWait, GivesUpAfterHalfAnHour) {
  Nanos now = 0;
  EXPECT_NEAR(LooksOn(3, now), 1800, 61);
  EXPECT_NEAR(LooksOn(PatientWait::kAllRanks, now), 1800, 61);
}

// Rank 0 waits for a rank that hangs, and the others wait for rank 0: they wait longer, so that rank 0 reports it.
TEST(PatientWait, OnRank0LaterThanThatOneOnOthers) {
  Nanos now = 0;
  EXPECT_GE(LooksOn(0, now), LooksOn(1, now) + 60);
}

TEST(PatientWait, ATimeInWhichTheProcessStoodStillIsNoWait) {
  PatientWait wait(1);
  Nanos now = WallNow() + 86'400 * kSecond;  // one day
  for (int looks = 0; looks < 1000; ++looks) ASSERT_NO_THROW(wait.LookAt(now += kSecond)) << looks;
}

}  // namespace
}  // namespace dtrain
