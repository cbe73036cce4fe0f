#include "framework/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/support/counted_random.h"

namespace dtrain {
namespace {

using Words = std::array<uint32_t, 4>;

// These are the known answers that Random123, the authors' library, ships for philox4x32-10.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, IsAFunctionOfItsArgumentsOnly) {
  const Random one(7, Purpose::kShuffle, 3, 4);
  const Random same(7, Purpose::kShuffle, 3, 4);
  for (const uint64_t index : {9u, 0u, 5u, 9u}) EXPECT_EQ(one.Bits(index), same.Bits(index));
}

// Fixed numbers detect a change of the key schedule, which would change every run.
TEST(Random, KeepsItsNumbers) {
  EXPECT_EQ(Random(1, Purpose::kInit, 2, 3).Block(0),
            (Words{682329841, 1062296804, 1342244624, 100422064}));
}

// counted_random, the oracle of other tests, shares no code with Random.
TEST(Random, GivesTheWordsOfItsSpecification) {
  EXPECT_EQ(counted_random::Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822,
                                   0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    for (const Purpose purpose : {Purpose::kInit, Purpose::kDropout, Purpose::kTeacherForcing}) {
      for (const uint64_t a : {uint64_t{0}, uint64_t{3}, uint64_t{1} << 40}) {
        for (const uint64_t b : {uint64_t{0}, uint64_t{5} << 20, uint64_t{1} << 40}) {
          const Random random(seed, purpose, a, b);
          for (const uint64_t index : {uint64_t{0}, uint64_t{7}, (uint64_t{1} << 40) + 2}) {
            EXPECT_EQ(random.Bits(index),
                      counted_random::Word(seed, static_cast<uint32_t>(purpose), a, b, index));
          }
        }
      }
    }
  }
}

TEST(Random, EveryArgumentMatters) {
  std::set<Words> blocks;
  for (const uint64_t seed : {0u, 1u}) {
    for (const Purpose purpose : {Purpose::kInit, Purpose::kDropout}) {
      for (const uint64_t a : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
        for (const uint64_t b : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
          const Random random(seed, purpose, a, b);
          for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
            blocks.insert(random.Block(index));
          }
        }
      }
    }
  }
  EXPECT_EQ(blocks.size(), 2u * 2 * 3 * 3 * 3);
}

TEST(Random, BitsAreTheWordsOfTheBlocks) {
  const Random random(5, Purpose::kSelfTest);
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(random.Bits(i), random.Block(i / 4)[i % 4]);
}

TEST(Random, UniformFillsItsIntervalEvenly) {
  const Random random(1, Purpose::kSelfTest);
  constexpr int kDraws = 20000;
  double sum = 0;
  std::vector<int> tenths(10);
  for (int i = 0; i < kDraws; ++i) {
    const float u = random.Uniform(i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    ++tenths[static_cast<int>(u * 10)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);  // 5 deviations of the mean
  for (const int count : tenths) EXPECT_NEAR(count, kDraws / 10, 220);
}

TEST(Random, UniformScalesToTheIntervalGiven) {
  const Random random(1, Purpose::kSelfTest);
  for (int i = 0; i < 1000; ++i) {
    const float u = random.Uniform(i, -3, 5);
    EXPECT_FLOAT_EQ(u, -3 + 8 * random.Uniform(i));
  }
}

TEST(Random, NormalHasMeanZeroAndDeviationOne) {
  const Random random(1, Purpose::kSelfTest);
  constexpr int kDraws = 20000;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Normal(i);
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.035);
  EXPECT_NEAR(squares / kDraws, 1, 0.05);
  EXPECT_NEAR(beyond_two / double{kDraws}, 0.0455, 0.0075);
}

TEST(Random, BelowReachesEveryValueAndNoOther) {
  const Random random(1, Purpose::kSelfTest);
  std::vector<int> counts(7);
  for (int i = 0; i < 7000; ++i) ++counts.at(random.Below(i, 7));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.Below(3, 1), 0u);
}

}  // namespace
}  // namespace dtrain
