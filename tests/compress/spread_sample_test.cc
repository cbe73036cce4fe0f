#include "framework/compress/spread_sample.h"

#include <gtest/gtest.h>

#include <optional>
#include <tuple>
#include <vector>

#include "framework/core/layout.h"

namespace dtrain {
namespace {

TEST(SpreadSample, EachRunIsWithinItsPart) {
  for (const bool drawn : {false, true}) {
    for (const auto& [n, count, run] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                        {100, 7, 1},
                                        {1000, 62, 16},
                                        {100'003, 1000, 16},
                                        {(int64_t{1} << 31) - 1, 1001, 16}}) {
      const SpreadSample sample(
          n, count, run, drawn ? std::optional(Random(3, Purpose::kSelection)) : std::nullopt);
      EXPECT_EQ(sample.values(), count * run);
      for (int64_t i = 0; i < count; ++i) {
        const Range part = SplitEvenly({0, n}, count, i);
        ASSERT_GE(sample.BeginOf(i), part.begin) << n << ", run " << i;
        ASSERT_LE(sample.BeginOf(i) + run, part.end) << n << ", run " << i;
        EXPECT_EQ(sample.PlaceOf(i * run + run - 1), sample.BeginOf(i) + run - 1);
      }
    }
  }
}

// Values of any period are met at all of its places.
TEST(SpreadSample, FollowsNoPeriod) {
  for (const int64_t period : {2, 16, 100, 1000}) {
    const SpreadSample sample(1'000'000, 1000, 1);
    int64_t in_first_half = 0;
    for (int64_t i = 0; i < sample.count(); ++i) {
      if (sample.BeginOf(i) % period < period / 2) ++in_first_half;
    }
    EXPECT_NEAR(static_cast<double>(in_first_half), 500, 60) << period;
  }
}

TEST(SpreadSample, OtherRandomNumbersDrawOtherPlaces) {
  const auto begins = [](uint64_t seed) {
    const SpreadSample sample(100'000, 100, 1, Random(seed, Purpose::kSelection));
    std::vector<int64_t> all;
    for (int64_t i = 0; i < sample.count(); ++i) all.push_back(sample.BeginOf(i));
    return all;
  };
  EXPECT_EQ(begins(1), begins(1));
  EXPECT_NE(begins(1), begins(2));
}

}  // namespace
}  // namespace dtrain
