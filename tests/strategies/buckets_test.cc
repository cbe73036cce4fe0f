#include "framework/strategies/sync/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/strategies.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

const GradientPieces kPieces{{{0, 10}, {10, 110}, {110, 120}, {120, 130}}};

TEST(FusionBuckets, JoinsNeighboursUpToTheLimit) {
  EXPECT_THAT(FusionBuckets(kPieces, 4 * 115), ElementsAre(Range{0, 110}, Range{110, 130}));
  EXPECT_THAT(FusionBuckets(kPieces, 4 * 120), ElementsAre(Range{0, 120}, Range{120, 130}));
}

TEST(FusionBuckets, ZeroGivesOneBucketAPiece) {
  EXPECT_THAT(FusionBuckets(kPieces, 0),
              ElementsAre(Range{0, 10}, Range{10, 110}, Range{110, 120}, Range{120, 130}));
}

TEST(FusionBuckets, APieceAboveTheLimitStandsAlone) {
  EXPECT_THAT(FusionBuckets(kPieces, 4 * 20),
              ElementsAre(Range{0, 10}, Range{10, 110}, Range{110, 130}));
}

TEST(FusionBuckets, LargeLimitGivesOne) {
  EXPECT_THAT(FusionBuckets(kPieces, 64 << 20), ElementsAre(Range{0, 130}));
}

TEST(FusionBuckets, AllReduceFuses64MBUnlessToldOtherwise) {
  const int64_t most = 16 << 20;  // of 4 bytes
  const GradientPieces just{{{0, 10}, {10, most}}}, more{{{0, 10}, {10, most + 1}}};
  const auto usual = MakeStrategy("{name: allreduce}");
  EXPECT_TRUE(usual->synchronous());
  EXPECT_THAT(usual->Buckets(just), ElementsAre(Range{0, most}));
  EXPECT_THAT(usual->Buckets(more), ElementsAre(Range{0, 10}, Range{10, most + 1}));
  EXPECT_EQ(MakeStrategy("{name: allreduce, fusion_bytes: 0}")->Buckets(just).size(), 2U);
}

}  // namespace
}  // namespace dtrain
