// Compares SampledLargest, which finds the k largest by a sample and one scan, with the digit
// counting selection and a sort, under every instruction set of this CPU and for samples of all
// kinds.
#include "framework/compress/sampled_largest.h"

#include <gtest/gtest.h>

#include "tests/compress/isas.h"
#include "tests/compress/values.h"
#include "tests/support/seeds.h"

namespace dtrain {
namespace {

std::vector<int32_t> ByDigits(const std::vector<float>& values, int64_t k) {
  LargestSelection digits(k);
  return SelectIn(digits, values, std::ssize(values)).places;
}

// Draws one of nine kinds of values: with many ties or none, smooth or periodic, large everywhere
// or only in one place.
std::vector<float> AnyValues(Draws& draws, int64_t n, uint64_t seed) {
  std::vector<float> values = NormalValues(n, seed);
  switch (draws.Below(9)) {
    case 0:  // many ties
      for (float& value : values) value = std::round(value * 2) / 2;
      break;
    case 1:  // all equal
      std::fill(values.begin(), values.end(), -0.25f);
      break;
    case 2:  // ascending: each is larger than all before
      std::sort(values.begin(), values.end(),
                [](float a, float b) { return std::abs(a) < std::abs(b); });
      break;
    case 3:  // large ones in one corner, which a sample may miss or hit
      for (int64_t i = n / 3; i < std::min(n, n / 3 + n / 100 + 1); ++i) values[i] *= 1e4f;
      break;
    case 4:  // mostly zeros
      for (int64_t i = 0; i < n; ++i) values[i] *= i % 97 == 3;
      break;
    case 5:  // periodic
      for (int64_t i = 0; i < n; ++i) values[i] = values[i % 512];
      break;
    case 6:  // of every magnitude
      for (int64_t i = 0; i < n; ++i)
        values[i] = std::ldexp(values[i], static_cast<int>(i % 250) - 125);
      break;
    case 7:  // adjacent floats, with no float between them
      for (float& value : values) {
        value = OfMagnitude(Magnitude(1.0f) + static_cast<uint32_t>(draws.Below(4)));
      }
      break;
    default:
      break;
  }
  return values;
}

void Compare(uint64_t seed, int64_t n) {
  Draws draws(seed);
  const std::vector<float> values = AnyValues(draws, n, seed);
  const int64_t k = draws.Coin() ? draws.Between(1, n) : draws.Between(1, 1 + n / 50);
  const std::vector<int32_t> expected = ByDigits(values, k);
  for (const Isa isa : IsasHere()) {
    SampledLargest selection(n, k, isa);
    const int64_t slice = draws.Coin() ? n : draws.Between(1 + n / 100, n);
    ASSERT_EQ(SelectIn(selection, values, slice).places, expected)
        << "seed " << seed << ", n " << n << ", k " << k << ", " << IsaName(isa);
  }
}

TEST(SampledLargest, ChoosesWhatCountingDigitsChooses) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Compare(seed, 1 + Draws(seed + 1'000'000).Below(3000));
    if (HasFatalFailure()) return;
  }
}

TEST(SampledLargest, ChoosesItFromValuesThatAreWorthASampleToo) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Compare(seed, 20'000 + Draws(seed + 2'000'000).Below(100'000));
    if (HasFatalFailure()) return;
  }
}

TEST(SampledLargest, AndThatIsTheSort) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Draws draws(seed);
    const int64_t n = 1 + draws.Below(2000);
    const std::vector<float> values = AnyValues(draws, n, seed);
    const int64_t k = draws.Between(1, n);
    SampledLargest selection(n, k);
    ASSERT_EQ(SelectIn(selection, values, n).places, LargestOf(values, k)) << "seed " << seed;
  }
}

// std::nth_element gives the magnitude that separates sent from kept values.
TEST(SampledLargest, NothingKeptIsLargerThanAnythingSent) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const int64_t n = 30'000;
    const std::vector<float> values = LaplaceValues(n, seed);
    const int64_t k = 1 + Draws(seed).Below(n / 10);
    std::vector<float> magnitudes = values;
    for (float& value : magnitudes) value = std::abs(value);
    std::nth_element(magnitudes.begin(), magnitudes.begin() + (k - 1), magnitudes.end(),
                     std::greater<>());
    SampledLargest selection(n, k);
    const std::vector<int32_t> sent = SelectIn(selection, values, n).places;
    ASSERT_EQ(std::ssize(sent), k);
    for (const int32_t place : sent) ASSERT_GE(std::abs(values[place]), magnitudes[k - 1]);
  }
}

TEST(SampledLargest, LooksOnceAtASampleAndOnceAtAll) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SampledLargest selection(200'000, 200);
    EXPECT_EQ(SelectIn(selection, NormalValues(200'000, seed), 50'000).looks, 2) << seed;
  }
  SampledLargest small(1000, 10);
  EXPECT_EQ(SelectIn(small, NormalValues(1000, 1), 1000).looks, 1);
}

// The sampled values are larger than all others, so too few values reach the sample's threshold.
TEST(SampledLargest, ASampleUnlikeTheRestCostsOneMoreLook) {
  const int64_t n = 100'000, k = 5000;
  std::vector<float> values = NormalValues(n, 7);
  const SpreadSample sample = SampledLargest::SampleOf(n, k);
  for (int64_t i = 0; i < sample.values(); ++i) values[sample.PlaceOf(i)] += 1000;
  for (const Isa isa : IsasHere()) {
    SampledLargest selection(n, k, isa);
    const Chosen chosen = SelectIn(selection, values, 30'000);
    EXPECT_EQ(chosen.places, ByDigits(values, k));
    EXPECT_EQ(chosen.looks, 3);
  }
}

// The sampled values are smaller than all others, so every other value reaches the sample's
// threshold.
TEST(SampledLargest, ASampleOfTheSmallestCostsNoLook) {
  const int64_t n = 100'000, k = 5000;
  std::vector<float> values = NormalValues(n, 8);
  const SpreadSample sample = SampledLargest::SampleOf(n, k);
  for (int64_t i = 0; i < sample.values(); ++i) values[sample.PlaceOf(i)] *= 1e-6f;
  SampledLargest selection(n, k);
  const Chosen chosen = SelectIn(selection, values, 30'000);
  EXPECT_EQ(chosen.places, ByDigits(values, k));
  EXPECT_EQ(chosen.looks, 2);
}

}  // namespace
}  // namespace dtrain
