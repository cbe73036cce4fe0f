#include "framework/strategies/sync/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/strategies/sync/merging.h"
#include "tests/strategies/strategies.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

const LayerGradients kPieces{{{0, 10}, {10, 110}, {110, 120}, {120, 130}}};

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

TEST(FusionBuckets, AllReduceFuses64MBUnlessSetOtherwise) {
  const int64_t most = 16 << 20;  // elements; 4 bytes each
  const LayerGradients just{{{0, 10}, {10, most}}}, more{{{0, 10}, {10, most + 1}}};
  const auto usual = MakeStrategy("{name: allreduce}");
  EXPECT_TRUE(usual->traits().lockstep);
  EXPECT_THAT(usual->Buckets(just), ElementsAre(Range{0, most}));
  EXPECT_THAT(usual->Buckets(more), ElementsAre(Range{0, 10}, Range{10, most + 1}));
  EXPECT_EQ(MakeStrategy("{name: allreduce, fusion_bytes: 0}")->Buckets(just).size(), 2U);
}

// ------------------------------------------------------------------ the other schedules

TEST(Schedules, LayerByLayerOrAllAtOnce) {
  const auto each = ElementsAre(Range{0, 10}, Range{10, 110}, Range{110, 120}, Range{120, 130});
  EXPECT_THAT(MakeStrategy("{name: wfbp}")->Buckets(kPieces), each);
  EXPECT_THAT(MakeStrategy("{name: naive}")->Buckets(kPieces), each);
  EXPECT_THAT(MakeStrategy("{name: single}")->Buckets(kPieces), ElementsAre(Range{0, 130}));
}

// The counter-example to the published rule (three gradients of 100 elements, T = 4 + bytes / 400): a rule that looks
// at one boundary between gradients at a time merges all; the best plan sends the first gradient alone.
LayerGradients CounterExample() {
  LayerGradients layer_gradients{{{0, 100}, {100, 200}, {200, 200}, {200, 300}}};
  layer_gradients.ready = {1, 4, 4, 7};
  layer_gradients.reduce_seconds = [](int64_t bytes) {
    return 4 + static_cast<double>(bytes) / 400;
  };
  return layer_gradients;
}

TEST(Schedules, MgWfbpMergesByTime) {
  const LayerGradients layer_gradients = CounterExample();
  const auto best = MakeStrategy("{name: mgwfbp}"),
             rule = MakeStrategy("{name: mgwfbp, rule: published}");
  EXPECT_TRUE(best->PlansByTime());
  EXPECT_FALSE(MakeStrategy("{name: wfbp}")->PlansByTime());
  EXPECT_THAT(best->Buckets(layer_gradients), ElementsAre(Range{0, 100}, Range{100, 300}));
  EXPECT_THAT(rule->Buckets(layer_gradients), ElementsAre(Range{0, 300}));
  EXPECT_EQ(PredictStep(layer_gradients, best->Buckets(layer_gradients)), 13);
  EXPECT_EQ(PredictStep(layer_gradients, rule->Buckets(layer_gradients)), 14);
}

TEST(Schedules, WithoutTimesMgWfbpMergesNothing) {
  EXPECT_EQ(MakeStrategy("{name: mgwfbp}")->Buckets(kPieces).size(), 4U);
}

}  // namespace
}  // namespace dtrain
