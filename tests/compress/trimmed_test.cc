// Tests the two selectors of trimmed: one must select what topk selects, the other follows a plain
// version of its search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compress/values.h"
#include "tests/support/seeds.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Compressor& Trimmed() {
  static const CompressConfig config = MakeCompress("trimmed");
  return *config.compressor;
}

const Compressor& Search() {
  static const CompressConfig config = MakeCompress("{name: trimmed, selector: search}");
  return *config.compressor;
}

std::vector<float> AnyValues(Draws& draws, uint64_t seed) {
  const int64_t n = draws.Between(1, 5000);
  std::vector<float> values = draws.Coin() ? NormalValues(n, seed) : LaplaceValues(n, seed);
  const int64_t kind = draws.Below(5);
  for (float& value : values) {
    if (kind == 0) value = std::round(value);
    if (kind == 1) value = 0.75f;
    if (kind == 2 && draws.Below(50) != 0) value = 0;
  }
  return values;
}

TEST(Trimmed, IsTopKByAnotherWay) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Draws draws(seed);
    const std::vector<float> values = AnyValues(draws, seed);
    const double density = draws.Coin() ? draws.Real(0.001, 0.05) : draws.Real(0.05, 0.95);
    const int64_t k = std::max<int64_t>(FloorOfShare(density, std::ssize(values)), 1);
    ASSERT_EQ(SelectFrom(Trimmed(), values, density, {}), LargestOf(values, k)) << "seed " << seed;
  }
}

std::vector<int32_t> SearchByHand(const std::vector<float>& values, double density) {
  const int64_t k = std::max<int64_t>(FloorOfShare(density, std::ssize(values)), 1);
  double mean = 0, largest = 0;
  for (const float value : values) {
    mean += std::abs(value) / static_cast<double>(values.size());
    largest = std::max<double>(largest, std::abs(value));
  }
  double left = 0, right = 1;
  std::vector<int32_t> above;
  while (right - left > 0.2) {
    const double ratio = (left + right) / 2;
    above = Above(values, mean + ratio * (largest - mean));
    const int64_t count = std::ssize(above);
    if (k < count && count < 2 * k) break;
    (count < 0.5 * static_cast<double>(k) ? right : left) = ratio;
  }
  return above.empty() ? LargestOf(values, 1) : LargestOf(values, above, 4 * k);
}

TEST(Trimmed, TheSearchIsTheAuthors) {
  size_t many = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Draws draws(seed);
    const std::vector<float> values = AnyValues(draws, seed);
    // The mean of equal values depends on the order of summation, so such vectors are skipped.
    if (std::all_of(values.begin(), values.end(), [](float u) { return u == 0.75f; })) continue;
    const double density = draws.Real(0.001, 0.3);
    const std::vector<int32_t> sent = SelectFrom(Search(), values, density, {});
    ASSERT_EQ(sent, SearchByHand(values, density)) << "seed " << seed;
    many += sent.size() > 1;
  }
  EXPECT_GT(many, 10u);
}

TEST(Trimmed, TheSearchSendsTheLargestWhereItFindsNone) {
  const std::vector<float> equal(1000, -2.0f);
  EXPECT_THAT(SelectFrom(Search(), equal, 0.01, {}), ElementsAre(0));
  EXPECT_THAT(SelectFrom(Search(), std::vector<float>(1000), 0.01, {}), IsEmpty());
}

// Nine in ten values are large, and all of them are above every threshold of the search.
TEST(Trimmed, TheSearchSendsNoMoreThanFourTimesK) {
  std::vector<float> values = UniformValues(10'000, 1);
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    values[i] = i % 10 == 0 ? values[i] * 1e-3f : 1 + std::abs(values[i]) * 1e-3f;
  }
  EXPECT_EQ(SelectFrom(Search(), values, 0.01, {}), SearchByHand(values, 0.01));
  EXPECT_LE(SelectFrom(Search(), values, 0.01, {}).size(), 400u);
  EXPECT_LE(SelectFrom(Search(), values, 0.9, {}).size(), 10'000u);
}

}  // namespace
}  // namespace dtrain
