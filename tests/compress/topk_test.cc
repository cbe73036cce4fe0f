// Compares topk with a sort of |u| in double, and tests the config section `compress`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/compress/compressor.h"
#include "framework/core/error.h"
#include "framework/core/random.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Compressor& TopK() {
  static const auto compressor = CompressorRegistry::Get("compressor", "topk").make();
  return *compressor;
}

// Returns the first k values by descending |u|, then by position.  Zeros are left out.
std::vector<int32_t> ByHand(const std::vector<float>& values, int64_t k) {
  std::vector<int32_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int32_t a, int32_t b) {
    return std::abs(static_cast<double>(values[a])) > std::abs(static_cast<double>(values[b]));
  });
  places.resize(static_cast<size_t>(k));
  std::erase_if(places, [&](int32_t place) { return values[place] == 0; });
  std::sort(places.begin(), places.end());
  return places;
}

TEST(TopK, IsTheSortOfTheMagnitudes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Random random(seed, Purpose::kSelfTest);
    const int64_t n = 1 + static_cast<int64_t>(random.Below(0, 400));
    const double density = 0.001 + 0.99 * random.Uniform(1);
    // One half of the vectors have many ties; the others have values of every magnitude.
    const bool coarse = random.Below(2, 2) == 0;
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i) {
      const float value = random.Normal(static_cast<uint64_t>(10 + i));
      values.push_back(coarse ? std::round(value * 2) / 2
                              : std::ldexp(value, static_cast<int>(i % 60) - 30));
    }
    const int64_t k = std::max<int64_t>(static_cast<int64_t>(density * static_cast<double>(n)), 1);
    EXPECT_EQ(SelectFrom(TopK(), values, density, {}), ByHand(values, k)) << "seed " << seed;
  }
}

TEST(TopK, EqualMagnitudesGoByTheLowestPlace) {
  EXPECT_THAT(SelectFrom(TopK(), std::vector<float>{1, -2, 2, 3, -2, 2}, 0.5, {}),
              ElementsAre(1, 2, 3));
}

TEST(TopK, TakesDenormalsForWhatTheyAre) {
  const float tiny = 1e-42f;
  EXPECT_THAT(SelectFrom(TopK(), std::vector<float>{0, tiny, -2 * tiny, 0}, 0.25, {}),
              ElementsAre(2));
  EXPECT_THAT(SelectFrom(TopK(), std::vector<float>{0, tiny, -0.0f, 0}, 0.75, {}), ElementsAre(1));
}

TEST(Share, AWholeProductStaysWhole) {
  for (int64_t percent = 1; percent < 100; ++percent) {
    const double density = static_cast<double>(percent) / 100;
    EXPECT_EQ(FloorOfShare(density, 1000), 10 * percent);
    EXPECT_EQ(CeilOfShare(density, 1000), 10 * percent);
    EXPECT_EQ(FloorOfShare(density, 10), percent / 10);
    EXPECT_EQ(CeilOfShare(density, 10), (percent + 9) / 10);
  }
}

TEST(Units, AreThePartsOfTheScopeWithinTheRange) {
  const std::vector<Range> layers = {{0, 10}, {10, 12}, {12, 40}}, buckets = {{0, 12}, {12, 40}};
  using Scope = Compressor::Scope;
  EXPECT_THAT(UnitsOf(Scope::kLayer, {5, 20}, layers, buckets),
              ElementsAre(Range{5, 10}, Range{10, 12}, Range{12, 20}));
  EXPECT_THAT(UnitsOf(Scope::kBucket, {0, 40}, layers, buckets),
              ElementsAre(Range{0, 12}, Range{12, 40}));
  EXPECT_THAT(UnitsOf(Scope::kModel, {5, 20}, layers, buckets), ElementsAre(Range{5, 20}));
}

CompressConfig Read(const std::string& section) {
  config::Document document = config::Document::FromText("compress: " + section, "run.yaml");
  CompressConfig config = ReadCompressConfig(document.root().Section("compress"));
  document.Finish();
  return config;
}

TEST(CompressConfig, NoneIsTheDefault) {
  EXPECT_FALSE(Read("{}").on());
  EXPECT_FALSE(Read("none").on());
}

TEST(CompressConfig, EachCompressorHasItsKeys) {
  const CompressConfig topk = Read("{name: topk, density: 0.2, scope: layer}");
  EXPECT_TRUE(topk.on());
  EXPECT_EQ(topk.density, 0.2);
  EXPECT_EQ(topk.scope, Compressor::Scope::kLayer);
  EXPECT_EQ(Read("topk").scope, Compressor::Scope::kBucket);
  const CompressConfig gdtopk = Read("{name: gdtopk, policy: speed_gap, flush: none}");
  EXPECT_EQ(gdtopk.policy, "speed_gap");
  EXPECT_FALSE(gdtopk.flush_epochs);
  EXPECT_EQ(gdtopk.scope, Compressor::Scope::kLayer);
  EXPECT_TRUE(Read("gdtopk").flush_epochs);
}

TEST(CompressConfig, TheDensityFollowsTheEpoch) {
  const CompressConfig config =
      Read("{name: topk, density: 0.001, density_warmup: [0.25, 0.0625, 1], dense_steps: 3}");
  EXPECT_EQ(config.DensityAt(0), 0.25);
  EXPECT_EQ(config.DensityAt(1), 0.0625);
  EXPECT_EQ(config.DensityAt(2), 1);
  EXPECT_EQ(config.DensityAt(3), 0.001);
  EXPECT_EQ(config.DensityAt(400), 0.001);
  EXPECT_EQ(config.DensityAt(0, 2), 1);
  EXPECT_EQ(config.DensityAt(0, 3), 0.25);
  EXPECT_EQ(config.DensityAt(5, 2), 1);
  EXPECT_EQ(Read("topk").DensityAt(0, 0), 0.01);
}

TEST(CompressConfig, ErrorsAreNamed) {
  const auto error_of = [](const std::string& section) {
    return WhatOf<ConfigError>([&] { Read(section); });
  };
  EXPECT_THAT(error_of("topq"), HasSubstr("topq"));
  EXPECT_THAT(error_of("{name: topk, density: 0}"), HasSubstr("density"));
  EXPECT_THAT(error_of("{name: topk, density: 1.5}"), HasSubstr("density"));
  EXPECT_THAT(error_of("{name: gdtopk, density: 0.5}"), HasSubstr("density"));
  EXPECT_THAT(error_of("{name: gdtopk, density_warmup: [0.5]}"), HasSubstr("density_warmup"));
  EXPECT_THAT(error_of("{name: topk, density_warmup: 0.5}"), HasSubstr("density_warmup"));
  EXPECT_THAT(error_of("{name: topk, density_warmup: [0.5, 0]}"), HasSubstr("density_warmup"));
  EXPECT_THAT(error_of("{name: topk, density_warmup: [1.5]}"), HasSubstr("density_warmup"));
  EXPECT_THAT(error_of("{name: topk, dense_steps: -1}"), HasSubstr("dense_steps"));
  EXPECT_EQ(error_of("{name: topk, density: 1}"), "no error");
}

}  // namespace
}  // namespace dtrain
