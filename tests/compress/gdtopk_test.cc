// Compares gdtopk's sampled threshold with the steps of its paper's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/compress/compressor.h"
#include "framework/core/random.h"

namespace dtrain {
namespace {

const Compressor& GdTopK() {
  static const auto compressor = [] {
    auto made = CompressorRegistry::Get("compressor", "gdtopk").make();
    config::Document document = config::Document::Empty();
    config::Reader reader = document.root();
    CompressConfig config;
    made->Configure(reader, config);
    return made;
  }();
  return *compressor;
}

std::vector<float> NormalValues(int64_t n, uint64_t seed) {
  const Random random(seed, Purpose::kSelfTest);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(random.Normal(static_cast<uint64_t>(i)));
  return values;
}

std::vector<int32_t> Reaching(const std::vector<float>& values, float threshold) {
  std::vector<int32_t> places;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) >= threshold) places.push_back(static_cast<int32_t>(i));
  }
  return places;
}

// Returns the positions of the k largest magnitudes in ascending order.
std::vector<int32_t> Largest(const std::vector<float>& values, size_t k) {
  std::vector<float> magnitudes;
  for (const float value : values) magnitudes.push_back(std::abs(value));
  std::sort(magnitudes.begin(), magnitudes.end(), std::greater<>());
  std::vector<int32_t> places = Reaching(values, magnitudes[k - 1]);
  places.resize(std::min(places.size(), k));
  return places;
}

// Implements gssp.md 5.1 with the sample that `key` draws.
std::vector<int32_t> GroupByHand(const std::vector<float>& values, double density,
                                 const SelectionKey& key) {
  const size_t n = values.size();
  const size_t target = static_cast<size_t>(std::ceil(static_cast<double>(n) * density));
  std::vector<float> sample;
  if (static_cast<double>(n) <= std::ceil(2 / density)) {
    for (const float value : values) sample.push_back(std::abs(value));
  } else {
    const size_t draws = static_cast<size_t>(std::ceil(static_cast<double>(n) * 0.01));
    const Random random(key.seed, Purpose::kSelection, static_cast<uint64_t>(key.actor),
                        (static_cast<uint64_t>(key.call) << 31) + static_cast<uint64_t>(key.unit));
    for (size_t i = 0; i < draws; ++i) sample.push_back(std::abs(values[random.Below(i, n)]));
  }
  std::sort(sample.begin(), sample.end(), std::greater<>());
  const double rank = std::ceil(static_cast<double>(sample.size()) * density);
  float threshold = sample[static_cast<size_t>(rank) - 1];
  for (int round = 0; round < 10; ++round) {
    const double count = static_cast<double>(Reaching(values, threshold).size());
    if (count > 1.3 * static_cast<double>(target)) return Largest(values, target);
    if (count >= 0.8 * static_cast<double>(target) || round == 9) break;
    threshold *= 0.8f;
  }
  std::vector<int32_t> places = Reaching(values, threshold);
  places.resize(std::min(places.size(), target));
  return places;
}

TEST(GdTopK, FollowsThePublishedSteps) {
  for (const int64_t n : {40, 900, 20'000}) {
    for (const double density : {0.35, 0.09, 0.015625, 0.004}) {
      for (int64_t call = 0; call < 20; ++call) {
        const SelectionKey key{.seed = 11, .actor = 3, .call = call, .unit = 2};
        const std::vector<float> values = NormalValues(n, static_cast<uint64_t>(call));
        EXPECT_EQ(SelectFrom(GdTopK(), values, density, key), GroupByHand(values, density, key))
            << "n " << n << ", density " << density << ", call " << call;
      }
    }
  }
}

TEST(GdTopK, NeverSendsMoreThanItsTarget) {
  for (int64_t call = 0; call < 100; ++call) {
    const auto values = NormalValues(3001, static_cast<uint64_t>(call));
    const size_t sent = SelectFrom(GdTopK(), values, 0.027, {.call = call}).size();
    EXPECT_LE(sent, 82u);  // ceil(3001 * 0.027)
    EXPECT_GE(sent, 65u);
  }
}

TEST(GdTopK, TheKeyDecidesOnTheSample) {
  const std::vector<float> values = NormalValues(20'000, 1);
  const SelectionKey key{.seed = 1, .actor = 1, .call = 1, .unit = 1};
  const auto chosen = SelectFrom(GdTopK(), values, 0.027, key);
  EXPECT_EQ(SelectFrom(GdTopK(), values, 0.027, key), chosen);
  // A few of the other samples may select the same values.
  int others = 0;
  for (int64_t i = 2; i < 6; ++i) {
    others += SelectFrom(GdTopK(), values, 0.027, {1, 1, i, 1}) != chosen;
    others += SelectFrom(GdTopK(), values, 0.027, {1, 1, 1, i}) != chosen;
    others += SelectFrom(GdTopK(), values, 0.027, {1, static_cast<int>(i), 1, 1}) != chosen;
    others += SelectFrom(GdTopK(), values, 0.027, {static_cast<uint64_t>(i), 1, 1, 1}) != chosen;
  }
  EXPECT_GE(others, 8);
}

}  // namespace
}  // namespace dtrain
