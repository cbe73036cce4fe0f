// Compares KthLargest with a sort, for digits of two widths and for values in one part and in two.
#include "framework/core/kth_largest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "framework/core/random.h"

namespace dtrain {
namespace {

// Magnitudes that agree in most digits, or in none, with ties and zeros.
std::vector<float> MagnitudesOf(uint64_t seed, int64_t n) {
  const Random random(seed, Purpose::kSelfTest);
  std::vector<float> values(static_cast<size_t>(n));
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t drawn = random.Below(i, 1u << 30);
    switch (seed % 4) {
      case 0:
        values[i] = static_cast<float>(drawn % 5) - 2;
        break;
      case 1:
        values[i] = OfMagnitude(Magnitude(1.0f) + static_cast<uint32_t>(drawn % 4));
        break;
      case 2:
        values[i] = drawn % 3 == 0 ? -0.0f : OfMagnitude(static_cast<uint32_t>(drawn));
        break;
      default:
        values[i] = OfMagnitude(static_cast<uint32_t>(drawn));
    }
  }
  return values;
}

template <class Largest>
void CompareWithSort(const std::vector<float>& values, int64_t k) {
  std::vector<uint32_t> sorted;
  for (const float value : values) sorted.push_back(Magnitude(value));
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const bool enough = k <= std::ssize(sorted) && sorted[static_cast<size_t>(k - 1)] > 0;
  const uint32_t expected = enough ? sorted[static_cast<size_t>(k - 1)] : 0;
  Largest largest, half;
  largest.Begin(k);
  half.Begin(k);
  bool more = true;
  for (int digit = 0; digit < Largest::kDigits; ++digit) {
    EXPECT_EQ(more, digit == 0 || enough);
    const auto middle = static_cast<std::ptrdiff_t>(values.size() / 3);
    largest.Count({values.begin(), values.begin() + middle});
    half.Count({values.begin() + middle, values.end()});
    for (size_t i = 0; i < largest.counts().size(); ++i) {
      largest.counts()[i] += half.counts()[i];
      half.counts()[i] = largest.counts()[i];
    }
    more = largest.Next();
    EXPECT_EQ(half.Next(), more);
  }
  EXPECT_FALSE(more);
  EXPECT_EQ(largest.bits(), expected);
  EXPECT_EQ(half.bits(), expected);
  EXPECT_EQ(largest.equals(), k - std::count_if(sorted.begin(), sorted.end(),
                                                [&](uint32_t one) { return one > expected; }));
}

TEST(KthLargest, IsThatOfASort) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto n = static_cast<int64_t>(seed % 37);
    const std::vector<float> values = MagnitudesOf(seed, n);
    for (const int64_t k : {int64_t{1}, n / 2 + 1, n, n + 2}) {
      SCOPED_TRACE(seed);
      if (k == 0) continue;
      CompareWithSort<KthLargest<11, 10, 10>>(values, k);
      CompareWithSort<KthLargest<8, 8, 8, 8>>(values, k);
    }
  }
}

TEST(KthLargest, OfNoneIsAboveAllNumbers) {
  KthLargest<8, 8, 8, 8> largest;
  largest.Begin(0);
  do {
    largest.Count(std::vector<float>{1, 2, 3});
  } while (largest.Next());
  EXPECT_GT(largest.bits(), Magnitude(3.4e38f));
  EXPECT_EQ(largest.equals(), 0);
}

}  // namespace
}  // namespace dtrain
