// Compares dgc with a plain implementation of the published method, and checks the rank of its
// threshold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compress/values.h"

namespace dtrain {
namespace {

const Compressor& Dgc() {
  static const CompressConfig config = MakeCompress("dgc");
  return *config.compressor;
}

// The sample draws one value from each of `draws` equal parts.
std::vector<int32_t> DgcByHand(const std::vector<float>& values, double density,
                               const SelectionKey& key) {
  const int64_t n = std::ssize(values);
  const int64_t k = std::max<int64_t>(FloorOfShare(density, n), 1);
  const int64_t draws =
      std::min<int64_t>(n, static_cast<int64_t>(std::ceil(std::max(0.01 * n, 10 / density))));
  const Random random(key.seed, Purpose::kSelection, static_cast<uint64_t>(key.actor),
                      (static_cast<uint64_t>(key.call) << 31) + static_cast<uint64_t>(key.unit));
  std::vector<float> sample;
  for (int64_t i = 0, begin = 0; i < draws; ++i) {
    const int64_t size = n / draws + (i < n % draws ? 1 : 0);
    sample.push_back(std::abs(values[begin + random.Below(i, size)]));
    begin += size;
  }
  const double share = static_cast<double>(draws) / static_cast<double>(n);
  const int64_t rank = std::max<int64_t>(std::llround(share * static_cast<double>(k)), 1);
  std::sort(sample.begin(), sample.end(), std::greater<>());
  std::vector<int32_t> reaching;
  for (int64_t i = 0; i < n; ++i) {
    if (std::abs(values[i]) >= sample[rank - 1]) reaching.push_back(static_cast<int32_t>(i));
  }
  return 3 * std::ssize(reaching) > 4 * k ? LargestOf(values, reaching, k) : reaching;
}

TEST(Dgc, FollowsItsSteps) {
  for (const int64_t n : {1, 40, 900, 20'000, 150'000}) {
    for (const double density : {0.25, 0.0625, 0.015625, 0.004, 0.001}) {
      for (int64_t call = 0; call < 10; ++call) {
        const SelectionKey key{.seed = 11, .actor = 3, .call = call, .unit = 2};
        const std::vector<float> values = NormalValues(n, static_cast<uint64_t>(call));
        ASSERT_EQ(SelectFrom(Dgc(), values, density, key), DgcByHand(values, density, key))
            << "n " << n << ", density " << density << ", call " << call;
      }
    }
  }
}

// The (0.01 k)-th largest sampled value lets k values through on average; the k-th largest would
// let 100 times as many through.  A result above 4k/3 values is cut to k.
TEST(Dgc, ItsThresholdLetsAboutKThrough) {
  const std::vector<float> values = NormalValues(1'000'000, 1);
  double sum = 0;
  for (int64_t call = 0; call < 40; ++call) {
    const size_t sent = SelectFrom(Dgc(), values, 0.01, {.call = call}).size();
    EXPECT_GE(sent, 6000u);
    EXPECT_LE(sent, 13'333u);
    sum += static_cast<double>(sent);
  }
  EXPECT_NEAR(sum / 40, 10'000, 500);
}

TEST(Dgc, OfEqualValuesTheFirstKAreSent) {
  const std::vector<float> values(5000, -0.5f);
  EXPECT_THAT(SelectFrom(Dgc(), values, 0.001, {}), ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(SelectFrom(Dgc(), std::vector<float>(5000), 0.001, {}), ::testing::IsEmpty());
}

TEST(Dgc, TheKeyDecidesOnTheSample) {
  const std::vector<float> values = NormalValues(50'000, 1);
  const auto chosen = SelectFrom(Dgc(), values, 0.01, {});
  EXPECT_EQ(SelectFrom(Dgc(), values, 0.01, {}), chosen);
  int others = 0;
  for (int64_t i = 2; i < 6; ++i) {
    others += SelectFrom(Dgc(), values, 0.01, {.call = i}) != chosen;
    others += SelectFrom(Dgc(), values, 0.01, {.unit = i}) != chosen;
    others += SelectFrom(Dgc(), values, 0.01, {.actor = static_cast<int>(i)}) != chosen;
  }
  EXPECT_GE(others, 8);
}

}  // namespace
}  // namespace dtrain
