// Tests how many values randk picks, which ones, how often, and which picks two workers share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compress/values.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Compressor& Different() {
  static const CompressConfig config = MakeCompress("randk");
  return *config.compressor;
}

const Compressor& Same() {
  static const CompressConfig config = MakeCompress("{name: randk, seeds: same}");
  return *config.compressor;
}

TEST(RandK, DrawsSoManyDifferentPlaces) {
  for (const Compressor* compressor : {&Different(), &Same()}) {
    for (const int64_t n : {1, 2, 3, 10, 1000, 4567}) {
      const std::vector<float> ones(static_cast<size_t>(n), 1.0f);
      for (const double density : {0.001, 0.3, 0.49, 0.5, 0.51, 0.9, 0.999}) {
        const auto chosen = SelectFrom(*compressor, ones, density, {});
        EXPECT_EQ(std::ssize(chosen), std::max<int64_t>(FloorOfShare(density, n), 1));
        EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end(), std::less_equal<>()));
        EXPECT_GE(chosen.front(), 0);
        EXPECT_LT(chosen.back(), n);
      }
    }
  }
}

// Each position is in k/n of all draws and each pair in k (k-1) / (n (n-1)) of them, within five
// standard deviations.
TEST(RandK, EachPlaceAndEachPairIsAsLikelyAsAnother) {
  constexpr int kN = 12, kCalls = 20'000;
  const std::vector<float> ones(kN, 1.0f);
  for (const int k : {1, 3, 6, 9}) {
    std::vector<int> single(kN), pair(kN * kN);
    for (int64_t call = 0; call < kCalls; ++call) {
      const auto chosen = SelectFrom(Different(), ones, k / 12.0, {.call = call});
      ASSERT_EQ(std::ssize(chosen), k);
      for (const int32_t a : chosen) {
        ++single[a];
        for (const int32_t b : chosen) pair[a * kN + b] += a < b;
      }
    }
    const auto expect_near = [&](int count, double part) {
      EXPECT_NEAR(count, kCalls * part, 5 * std::sqrt(kCalls * part * (1 - part)) + 1e-9);
    };
    for (int a = 0; a < kN; ++a) {
      expect_near(single[a], k / 12.0);
      for (int b = a + 1; b < kN; ++b) expect_near(pair[a * kN + b], k * (k - 1) / 132.0);
    }
  }
}

// Rand_k leaves (1 - k/d) of the sum of squares behind, on average.
TEST(RandK, KeepsBackItsShareOfTheSquares) {
  constexpr int kCalls = 2000;
  const std::vector<float> values = NormalValues(1000, 1);
  for (const double density : {0.01, 0.1, 0.4, 0.8}) {
    double sum = 0, squares = 0;
    for (int64_t call = 0; call < kCalls; ++call) {
      const double kept =
          PartKept(values, SelectFrom(Different(), values, density, {.call = call}));
      sum += kept;
      squares += kept * kept;
    }
    const double mean = sum / kCalls;
    const double error = std::sqrt((squares / kCalls - mean * mean) / kCalls);
    EXPECT_NEAR(mean, 1 - density, 5 * error) << density;
  }
}

TEST(RandK, WorkersDrawTheSameOrNot) {
  const std::vector<float> ones(1000, 1.0f);
  const SelectionKey here{.actor = 1, .call = 4}, there{.actor = 2, .call = 4},
      later{.actor = 1, .call = 5};
  EXPECT_EQ(SelectFrom(Same(), ones, 0.1, here), SelectFrom(Same(), ones, 0.1, there));
  EXPECT_NE(SelectFrom(Same(), ones, 0.1, here), SelectFrom(Same(), ones, 0.1, later));
  EXPECT_NE(SelectFrom(Different(), ones, 0.1, here), SelectFrom(Different(), ones, 0.1, there));
  EXPECT_NE(SelectFrom(Different(), ones, 0.1, here), SelectFrom(Different(), ones, 0.1, later));
}

// The picks do not depend on a worker's values, since other workers may have non-zero values there.
TEST(RandK, SameSeedsTakeZerosToo) {
  const std::vector<float> ones(1000, 1.0f), zeros(1000);
  for (const double density : {0.1, 0.9}) {
    EXPECT_EQ(SelectFrom(Same(), zeros, density, {}), SelectFrom(Same(), ones, density, {}));
  }
}

TEST(RandK, DifferentSeedsLeaveZerosOut) {
  std::vector<float> values(1000, 1.0f);
  const std::vector<int32_t> drawn = SelectFrom(Different(), values, 0.1, {});
  for (size_t i = 0; i < 99; ++i) values[drawn[i]] = -0.0f;
  EXPECT_THAT(SelectFrom(Different(), values, 0.1, {}), ElementsAre(drawn[99]));
  values[drawn[99]] = 0;
  values[777] = -3;
  EXPECT_THAT(SelectFrom(Different(), values, 0.1, {}), ElementsAre(777));
  EXPECT_THAT(SelectFrom(Different(), std::vector<float>(1000), 0.1, {}), IsEmpty());
}

}  // namespace
}  // namespace dtrain
