// Tests the vectors of an actor against plain arrays.
#include "framework/exchange/vectors.h"

#include <gtest/gtest.h>

#include <numeric>

namespace dtrain {
namespace {

constexpr Range kAll{10, 20};

ActorVectors MakeVectors(BlobPools& pools) {
  return {{{"master", VectorRole::kMaster, kAll},
           {"sum", VectorRole::kPlain, kAll},
           {"gradient", VectorRole::kGradient, kAll}},
          3,
          &pools};
}

std::vector<float> ValuesOf(ActorVectors& vectors, VectorId vector) {
  const VectorSlice slice = vectors.Get(vector);
  return {slice.At(kAll.begin), slice.At(kAll.begin) + kAll.size()};
}

void Fill(ActorVectors& vectors, VectorId vector, float first) {
  float* const values = vectors.Overwrite(vector);
  std::iota(values, values + kAll.size(), first);
}

// new = old + 100 within the slice.
void Raise(ActorVectors& vectors, VectorId vector, Range slice) {
  const auto memory = vectors.Slice(vector, slice);
  for (int64_t i = 0; i < slice.size(); ++i) {
    memory.new_values[i] = (memory.old_values == nullptr ? 0 : memory.old_values[i]) + 100;
  }
}

TEST(ActorVectors, AnUnsharedVectorIsChangedInPlace) {
  BlobPools pools;
  ActorVectors vectors = MakeVectors(pools);
  Fill(vectors, 0, 0);
  const float* const before = vectors.Get(0).At(10);
  Raise(vectors, 0, {12, 14});
  EXPECT_EQ(vectors.Get(0).At(10), before);
  EXPECT_EQ(ValuesOf(vectors, 0), (std::vector<float>{0, 1, 102, 103, 4, 5, 6, 7, 8, 9}));
}

TEST(ActorVectors, ASharedVersionStaysAsItWas) {
  BlobPools pools;
  ActorVectors vectors = MakeVectors(pools);
  Fill(vectors, 0, 0);
  const VectorSlice held = vectors.Get(0);
  Raise(vectors, 0, {18, 20});
  Raise(vectors, 0, {10, 12});  // out of order; the middle is not written
  EXPECT_EQ(held.At(10)[0], 0);
  EXPECT_EQ(ValuesOf(vectors, 0), (std::vector<float>{100, 101, 2, 3, 4, 5, 6, 7, 108, 109}));
}

TEST(ActorVectors, WritingASliceTwiceStartsFromWhatTheFirstLeft) {
  BlobPools pools;
  ActorVectors vectors = MakeVectors(pools);
  Fill(vectors, 0, 0);
  const VectorSlice held = vectors.Get(0);
  Raise(vectors, 0, {10, 20});
  Raise(vectors, 0, {15, 17});
  EXPECT_EQ(ValuesOf(vectors, 0),
            (std::vector<float>{100, 101, 102, 103, 104, 205, 206, 107, 108, 109}));
}

TEST(ActorVectors, AnEmptyVectorCountsAsZeros) {
  BlobPools pools;
  ActorVectors vectors = MakeVectors(pools);
  Fill(vectors, 1, 5);  // leaves old values in the pool's memory
  vectors.Clear(1);
  Raise(vectors, 1, {13, 14});
  EXPECT_EQ(ValuesOf(vectors, 1), (std::vector<float>{0, 0, 0, 100, 0, 0, 0, 0, 0, 0}));
}

TEST(ActorVectors, OverwritingLeavesTheVersionOnItsWayAlone) {
  BlobPools pools;
  ActorVectors vectors = MakeVectors(pools);
  Fill(vectors, 2, 1);
  const VectorSlice sent = vectors.Get(2, {12, 15});
  Fill(vectors, 2, 50);
  EXPECT_EQ(std::vector<float>(sent.At(12), sent.At(12) + 3), (std::vector<float>{3, 4, 5}));
}

TEST(ActorVectors, SavesAndLoads) {
  BlobPools pools;
  ActorVectors vectors = MakeVectors(pools);
  Fill(vectors, 0, 1);
  const std::string saved = SaveState(vectors);
  ActorVectors other = MakeVectors(pools);
  Fill(other, 1, 7);
  LoadState(other, saved);
  EXPECT_EQ(ValuesOf(other, 0), ValuesOf(vectors, 0));
  EXPECT_EQ(HashState(other), HashState(vectors));
  Raise(other, 0, {10, 11});
  EXPECT_NE(HashState(other), HashState(vectors));
}

}  // namespace
}  // namespace dtrain
