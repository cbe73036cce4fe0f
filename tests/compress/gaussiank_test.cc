// Compares gaussiank with plain versions of its two threshold loops, and checks cases of the papers
// that have a closed form.
#include "framework/compress/gaussiank/gaussiank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/compress/isas.h"
#include "tests/compress/values.h"
#include "tests/support/message_of.h"
#include "tests/support/seeds.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kRho = 0.001;

int64_t EntriesOf(double density, int64_t n) {
  return std::max<int64_t>(static_cast<int64_t>(density * static_cast<double>(n) + 1e-9), 1);
}

// The two-sided z values are from published tables.
TEST(NormalQuantile, IsThatOfTables) {
  const std::pair<double, double> known[] = {
      {0.05, 1.959963984540},  {0.04, 2.053748910631},   {0.02, 2.326347874041},
      {0.01, 2.575829303549},  {0.005, 2.807033768344},  {0.004, 2.878161739095},
      {0.001, 3.290526731492}, {0.0001, 3.890591886413}, {1, 0},
      {0.5, 0.674489750196}};
  for (const auto& [rho, z] : known) EXPECT_NEAR(UpperNormalQuantile(rho / 2), z, 2e-11) << rho;
}

TEST(NormalQuantile, ItsTailIsTheOneAskedFor) {
  for (double tail = 0.5; tail > 1e-12; tail *= 0.7) {
    const double z = UpperNormalQuantile(tail);
    EXPECT_NEAR(0.5 * std::erfc(z / std::sqrt(2.0)) / tail, 1, 1e-8) << tail;
  }
}

double NormalThresholdOf(const std::vector<float>& values, double density) {
  const double n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const float value : values) mean += value / n;
  for (const float value : values) squares += (value - mean) * (value - mean);
  const double deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return mean + UpperNormalQuantile(density / 2) * deviation;
}

std::vector<int32_t> PublishedByHand(const std::vector<float>& values, double density) {
  const int64_t k = EntriesOf(density, std::ssize(values));
  double threshold = NormalThresholdOf(values, density);
  std::vector<int32_t> last;
  for (int test = 0; test < 3; ++test) {
    last = Above(values, threshold);
    const double count = static_cast<double>(last.size()), target = static_cast<double>(k);
    if (count < 2 * target / 3) {
      threshold *= 0.5;
    } else if (count > 4 * target / 3) {
      threshold *= 1.5;
    } else {
      break;
    }
  }
  return last.empty() ? LargestOf(values, 1) : LargestOf(values, last, 4 * k);
}

struct Bracketed {
  std::vector<int32_t> sent;
  bool found = false;  // a threshold was found
};

// This plain version scans all values for every threshold that it tries.
Bracketed BracketedByHand(const std::vector<float>& values, double density, double threshold) {
  const int64_t k = EntriesOf(density, std::ssize(values));
  if (!(threshold > 0)) threshold = NormalThresholdOf(values, density);
  double low = 0, high = 0;
  for (int test = 0; test < 24 && threshold > 0; ++test) {
    const std::vector<int32_t> above = Above(values, threshold);
    const double count = static_cast<double>(above.size()), target = static_cast<double>(k);
    if (count < 2 * target / 3) {
      high = threshold;
    } else if (count > 4 * target / 3) {
      low = threshold;
    } else {
      return {above, true};
    }
    threshold = low > 0 && high > 0 ? std::sqrt(low * high) : threshold * (high > 0 ? 0.5 : 1.5);
  }
  return {LargestOf(values, k), false};
}

std::vector<float> AnyValues(uint64_t seed, int64_t n) {
  switch (seed % 4) {
    case 0:
      return NormalValues(n, seed);
    case 1:
      return LaplaceValues(n, seed);
    case 2:
      return UniformValues(n, seed);
    default: {
      std::vector<float> values = NormalValues(n, seed);
      for (float& value : values) value = std::round(value * 4) / 4 + 0.125f;
      return values;
    }
  }
}

TEST(GaussianK, ThePublishedLoopIsTheAuthors) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Draws draws(seed);
    const int64_t n = draws.Between(1, 6000);
    const double density = draws.Real(0.001, 0.2);
    const std::vector<float> values = AnyValues(seed, n);
    const std::vector<int32_t> expected = PublishedByHand(values, density);
    for (const Isa isa : IsasHere()) {
      PublishedGaussian selection(n, density, isa);
      ASSERT_EQ(SelectIn(selection, values, draws.Between(n / 3 + 1, n)).places, expected)
          << "seed " << seed << ", n " << n << ", density " << density << ", " << IsaName(isa);
    }
  }
}

TEST(GaussianK, TheBracketedLoopTestsAsIfItWentThroughAllValuesEachTime) {
  int found = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Draws draws(seed);
    const int64_t n = draws.Between(1, 6000);
    const double density = draws.Real(0.001, 0.2);
    // The first threshold is 0 (none), or up to 8 times too high or too low.
    const float begin = draws.Coin() ? 0 : static_cast<float>(2 * std::pow(2.0, draws.Real(-3, 3)));
    const std::vector<float> values = AnyValues(seed, n);
    const Bracketed expected = BracketedByHand(values, density, begin);
    for (const Isa isa : IsasHere()) {
      BracketedGaussian selection(n, density, begin, isa);
      ASSERT_EQ(SelectIn(selection, values, draws.Between(n / 3 + 1, n)).places, expected.sent)
          << "seed " << seed << ", n " << n << ", density " << density << ", " << IsaName(isa);
    }
    found += expected.found;
  }
  EXPECT_GT(found, 250);
}

const Compressor& Published() {
  static const CompressConfig config = MakeCompress("{name: gaussiank, loop: published}");
  return *config.compressor;
}

const Compressor& Default() {
  static const CompressConfig config = MakeCompress("gaussiank");
  return *config.compressor;
}

// About 1000 +- 32 of a million normal values are above the first threshold.
TEST(GaussianK, NormalValuesNeedOneTest) {
  const int64_t n = 1'000'000;
  const std::vector<float> values = NormalValues(n, 1);
  const std::vector<int32_t> first = Above(values, NormalThresholdOf(values, kRho));
  EXPECT_NEAR(static_cast<double>(first.size()), 1000, 160);
  EXPECT_EQ(SelectFrom(Published(), values, kRho, {}), first);
  EXPECT_EQ(SelectFrom(Default(), values, kRho, {}), first);
}

// A fraction exp(-3.29 sqrt 2) = 0.0095 of the values is above the first threshold, and 9.3e-4 is
// above 1.5 times that threshold.
TEST(GaussianK, LaplaceValuesNeedOneStep) {
  const int64_t n = 1'000'000;
  const std::vector<float> values = LaplaceValues(n, 2);
  const double first = NormalThresholdOf(values, kRho);
  EXPECT_NEAR(static_cast<double>(Above(values, first).size()), 9530, 500);
  const std::vector<int32_t> second = Above(values, 1.5 * first);
  EXPECT_NEAR(static_cast<double>(second.size()), 930, 160);
  EXPECT_EQ(SelectFrom(Published(), values, kRho, {}), second);
}

// The published loop tries 1.90 (no value is above), 0.95 (a twentieth is) and 1.42 (none is), so
// it sends only the largest value.
TEST(GaussianK, ThePublishedLoopOscillatesOnUniformValuesAndTheOtherDoesNot) {
  const int64_t n = 1'000'000;
  const std::vector<float> values = UniformValues(n, 3);
  EXPECT_EQ(SelectFrom(Published(), values, kRho, {}), LargestOf(values, 1));
  const std::vector<int32_t> chosen = SelectFrom(Default(), values, kRho, {});
  EXPECT_GE(chosen.size(), 667u);
  EXPECT_LE(chosen.size(), 1333u);
}

// The published loop's three thresholds select none, all and all of the values (for a negative
// constant all three times all), so it sends 4k values.  Our loop sends k.
TEST(GaussianK, OfEqualValuesTheFirstAreSent) {
  for (const float constant : {0.5f, -0.5f, 1e-30f, -3e30f}) {
    const std::vector<float> values(5000, constant);
    std::vector<int32_t> first(20);
    std::iota(first.begin(), first.end(), 0);
    EXPECT_EQ(SelectFrom(Published(), values, kRho, {}), first) << constant;
    first.resize(5);
    EXPECT_EQ(SelectFrom(Default(), values, kRho, {}), first) << constant;
  }
}

TEST(GaussianK, OfZerosNothingIsSent) {
  const std::vector<float> zeros(5000, -0.0f);
  float threshold = 1;
  EXPECT_THAT(SelectFrom(Published(), zeros, kRho, {}), IsEmpty());
  EXPECT_THAT(SelectFrom(Default(), zeros, kRho, {}, &threshold), IsEmpty());
  EXPECT_EQ(threshold, 0);
  EXPECT_THAT(SelectFrom(Default(), zeros, kRho, {.threshold = 2}), IsEmpty());
}

TEST(GaussianK, OfFewValuesOneIsSent) {
  std::vector<float> values = NormalValues(500, 4);
  values[123] = -7;
  EXPECT_THAT(SelectFrom(Default(), values, kRho, {}), ElementsAre(123));
}

// The mean of |u| is far from the mean of u, so only the tail on that side is beyond the threshold.
TEST(GaussianK, AMeanFarFromZeroDoesNotMatterToTheBracketedLoop) {
  std::vector<float> values = NormalValues(100'000, 5);
  for (float& value : values) value -= 3;
  const size_t sent = SelectFrom(Default(), values, 0.01, {}).size();
  EXPECT_GE(sent, 667u);
  EXPECT_LE(sent, 1333u);
}

int LooksFrom(const std::vector<float>& values, float threshold, float& handed_on) {
  BracketedGaussian selection(std::ssize(values), kRho, threshold);
  const Chosen chosen = SelectIn(selection, values, 100'000);
  EXPECT_GE(chosen.places.size() * 3, values.size() * 2 / 1000);
  EXPECT_LE(chosen.places.size() * 3, values.size() * 4 / 1000);
  handed_on = selection.Threshold();
  return chosen.looks;
}

// Each step adds a gradient to the residual, as error feedback does.
TEST(GaussianK, FromTheThresholdBeforeOneLookIsEnough) {
  const int64_t n = 300'000;
  std::vector<float> values(n, 0.0f);
  float threshold = 0;
  int looks = 0;
  for (uint64_t step = 0; step < 12; ++step) {
    const std::vector<float> gradient = LaplaceValues(n, step);
    for (int64_t i = 0; i < n; ++i) values[i] += gradient[i];
    const int now = LooksFrom(values, threshold, threshold);
    if (step > 0) looks += now;
    EXPECT_GT(threshold, 0);
    for (const int32_t place : Above(values, threshold)) values[place] = 0;
  }
  EXPECT_EQ(looks, 11);
}

// A threshold that is too low costs no second pass: higher ones are tried among the values that
// passed.
TEST(GaussianK, AThresholdThatIsFarOffIsMendedInFewLooks) {
  const std::vector<float> values = NormalValues(300'000, 6);
  float handed_on = 0;
  EXPECT_EQ(LooksFrom(values, 1e-6f, handed_on), 1);
  EXPECT_EQ(LooksFrom(values, 1.0f, handed_on), 1);
  EXPECT_EQ(LooksFrom(values, 5.0f, handed_on), 2);
  EXPECT_LE(LooksFrom(values, 1e20f, handed_on), 7);
  for (const float broken : {INFINITY, NAN, -1.0f}) {
    EXPECT_LE(LooksFrom(values, broken, handed_on), 7) << broken;
  }
}

TEST(GaussianK, OnlyTheBracketedLoopHandsAThresholdOn) {
  const std::vector<float> values = NormalValues(10'000, 7);
  float threshold = 1;
  SelectFrom(Published(), values, 0.01, {}, &threshold);
  EXPECT_EQ(threshold, 0);
  EXPECT_FALSE(Published().carries_threshold());
  const std::vector<int32_t> sent = SelectFrom(Default(), values, 0.01, {}, &threshold);
  EXPECT_TRUE(Default().carries_threshold());
  EXPECT_EQ(SelectFrom(Default(), values, 0.01, {.threshold = threshold}), sent);
  // A threshold is also handed on when the search found none.
  const std::vector<float> equal(1000, 2.0f);
  SelectFrom(Default(), equal, 0.01, {}, &threshold);
  EXPECT_EQ(threshold, std::nextafter(2.0f, 0.0f));
}

TEST(GaussianK, AnotherLoopIsAnError) {
  EXPECT_THAT(WhatOf<ConfigError>([] { MakeCompress("{name: gaussiank, loop: twice}"); }),
              ::testing::HasSubstr("loop"));
}

}  // namespace
}  // namespace dtrain
