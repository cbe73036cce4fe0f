#include "framework/core/error.h"

#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace dtrain {
namespace {

template <class T>
int CodeOf() {
  return static_cast<int>(T("what", "hint").code());
}

// The README and scripts depend on these exit codes.
TEST(Error, EachClassHasItsExitCode) {
  EXPECT_EQ(CodeOf<UsageError>(), 2);
  EXPECT_EQ(CodeOf<ConfigError>(), 2);
  EXPECT_EQ(CodeOf<ShapeError>(), 2);
  EXPECT_EQ(CodeOf<DataError>(), 3);
  EXPECT_EQ(CodeOf<PeerLostError>(), 4);
  EXPECT_EQ(CodeOf<DivergedError>(), 5);
  EXPECT_EQ(CodeOf<CheckpointError>(), 6);
  EXPECT_EQ(CodeOf<StalledError>(), 7);
  EXPECT_EQ(static_cast<int>(ExitCode::kDone), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::kInternal), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::kStopped), 75);
}

TEST(Error, CarriesWhatAndHint) {
  try {
    throw DataError("labels.gz: label 11 of 10 classes", "is it the right file?");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "labels.gz: label 11 of 10 classes");
    EXPECT_EQ(error.hint(), "is it the right file?");
  }
}

TEST(CheckDeathTest, SaysWhatFailedWithValuesAndRank) {
  const int buckets = 3;
  DT_CHECK(buckets == 3) << "never evaluated";
  EXPECT_DEATH(DT_CHECK(buckets == 4) << "buckets " << buckets,
               "dtrain: .*error_test.cc:[0-9]+: check failed: buckets == 4 buckets 3");
  EXPECT_DEATH(
      {
        SetCheckRank(5);
        DT_CHECK(buckets < 0);
      },
      "dtrain: rank 5: .*check failed: buckets < 0");
}

}  // namespace
}  // namespace dtrain
