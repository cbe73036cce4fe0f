// Tests the properties that every compressor has: walks the registry, and adds the configurations
// whose keys change the selection.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/compress/compressor.h"
#include "framework/core/random.h"
#include "tests/compress/values.h"
#include "tests/support/compressors.h"

namespace dtrain {
namespace {

constexpr double kDensities[] = {0.001, 0.01, 0.1, 0.35, 0.9};

struct Shape {
  const char* name;
  std::vector<float> values;
};

// Vectors that are hard to select from: normal, all equal, mostly zero, all zero, huge and tiny
// values.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const int64_t n : {1, 2, 7, 100, 5000}) {
    const Random random(3, Purpose::kSelfTest, static_cast<uint64_t>(n));
    std::vector<float> normal, spread, rare;
    for (int64_t i = 0; i < n; ++i) {
      const float value = random.Normal(static_cast<uint64_t>(i));
      normal.push_back(value);
      spread.push_back(value * std::ldexp(1.0f, static_cast<int>(i % 200) - 100));
      rare.push_back(i % 50 == 3 ? value : i % 2 == 0 ? 0.0f : -0.0f);
    }
    const std::vector<float> equal(static_cast<size_t>(n), -0.25f);
    const std::vector<float> zeros(static_cast<size_t>(n), 0.0f);
    shapes.push_back({"normal", normal});
    shapes.push_back({"spread", spread});
    shapes.push_back({"rare", rare});
    shapes.push_back({"equal", equal});
    shapes.push_back({"zeros", zeros});
  }
  return shapes;
}

class EveryCompressor : public ::testing::TestWithParam<std::string> {
 protected:
  EveryCompressor() : config_(MakeCompress(GetParam())), compressor_(config_.compressor.get()) {}

  // Like SelectFrom, but feeds the values in parts of `size` values.
  std::vector<int32_t> InParts(const std::vector<float>& values, double density,
                               const SelectionKey& key, int64_t size) {
    const int64_t n = static_cast<int64_t>(values.size());
    std::vector<int32_t> chosen(static_cast<size_t>(compressor_->EntriesMost(n, density)));
    const auto selection = compressor_->Select(n, density, key);
    const auto for_parts = [&](const auto& work) {
      for (int64_t at = 0; at < n; at += size) {
        work(values.data() + at, Range{at, std::min(n, at + size)});
      }
    };
    while (selection->WantsLook()) {
      for_parts([&](const float* part, Range range) { selection->Look(part, range); });
    }
    int64_t count = 0;
    for_parts([&](const float* part, Range range) {
      count += selection->Choose(part, range, chosen.data() + count);
    });
    chosen.resize(static_cast<size_t>(count));
    return chosen;
  }

  const CompressConfig config_;
  const Compressor* const compressor_;
};

TEST_P(EveryCompressor, ChoosesAscendingPlacesAndNoMoreThanItSays) {
  for (const Shape& shape : Shapes()) {
    for (const double density : kDensities) {
      const int64_t n = static_cast<int64_t>(shape.values.size());
      const std::vector<int32_t> chosen = SelectFrom(*compressor_, shape.values, density, {});
      SCOPED_TRACE(std::string(shape.name) + ", n " + std::to_string(n) + ", density " +
                   std::to_string(density));
      EXPECT_LE(static_cast<int64_t>(chosen.size()), compressor_->EntriesMost(n, density));
      EXPECT_LE(compressor_->EntriesMost(n, density), n);
      EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end(), std::less_equal<>()));
      for (const int32_t place : chosen) {
        ASSERT_GE(place, 0);
        ASSERT_LT(place, n);
      }
    }
  }
}

TEST_P(EveryCompressor, SendsSomethingUnlessAllIsZero) {
  for (const Shape& shape : Shapes()) {
    const bool zeros = std::all_of(shape.values.begin(), shape.values.end(),
                                   [](float value) { return value == 0; });
    for (const double density : kDensities) {
      EXPECT_EQ(SelectFrom(*compressor_, shape.values, density, {}).empty(), zeros) << shape.name;
    }
  }
}

TEST_P(EveryCompressor, ChoosesTheSameInPartsOfAnySize) {
  for (const Shape& shape : Shapes()) {
    const SelectionKey key{.seed = 5, .actor = 2, .call = 9, .unit = 1};
    const std::vector<int32_t> whole = SelectFrom(*compressor_, shape.values, 0.1, key);
    for (const int64_t size : {1, 3, 1000}) {
      EXPECT_EQ(InParts(shape.values, 0.1, key, size), whole)
          << shape.name << ", parts of " << size;
    }
  }
}

TEST_P(EveryCompressor, TakesNaNAndInfinityForLargeAndGoesOn) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(1000, 0.5f);
    values[17] = bad;
    values[800] = bad;
    const std::vector<int32_t> chosen = SelectFrom(*compressor_, values, 0.1, {});
    EXPECT_FALSE(chosen.empty());
    std::fill(values.begin(), values.end(), bad);
    EXPECT_FALSE(SelectFrom(*compressor_, values, 0.1, {}).empty());
  }
}

// On normal random values the number sent stays within the bounds that the published selectors
// accept.  The densities are high enough for an estimated threshold.
TEST_P(EveryCompressor, SendsAboutAsManyAsItIsAskedFor) {
  const Random random(4, Purpose::kSelfTest);
  std::vector<float> values;
  for (uint64_t i = 0; i < 100'000; ++i) values.push_back(random.Normal(i));
  for (const double density : {0.004, 0.05, 0.35}) {
    const double asked = density * 100'000;
    const double sent = static_cast<double>(SelectFrom(*compressor_, values, density, {}).size());
    EXPECT_GE(sent, asked * 2 / 3 - 1);
    EXPECT_LE(sent, asked * 4 / 3 + 1);
  }
}

// The gradients are multiples of 1/64, so their sums are exact.
TEST_P(EveryCompressor, WhatWasSentAndWhatIsKeptIsAllThatCame) {
  constexpr int kN = 3000, kSteps = 20;
  std::vector<float> came(kN), sent(kN), kept(kN);
  float threshold = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Random random(9, Purpose::kSelfTest, static_cast<uint64_t>(step));
    for (int i = 0; i < kN; ++i) {
      const float gradient = std::round(random.Normal(static_cast<uint64_t>(i)) * 64) / 64;
      came[i] += gradient;
      kept[i] += gradient;
    }
    const SelectionKey key{.call = step, .threshold = threshold};
    for (const int32_t place : SelectFrom(*compressor_, kept, 0.02, key, &threshold)) {
      sent[place] += kept[place];
      kept[place] = 0;
    }
  }
  for (int i = 0; i < kN; ++i) ASSERT_EQ(sent[i] + kept[i], came[i]) << i;
  EXPECT_EQ(threshold > 0, compressor_->carries_threshold());
}

std::vector<std::string> Cases() {
  std::vector<std::string> cases = CompressorNames(/*casts=*/false);
  cases.push_back("{name: gaussiank, loop: published}");
  return cases;
}

// Turns "{name: gaussiank, loop: published}" into gaussiank_loop_published.
std::string NameOf(const ::testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param.substr(info.param[0] == '{' ? 7 : 0)) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      name += c;
    } else if (c == ' ') {
      name += '_';
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryCompressor, ::testing::ValuesIn(Cases()), NameOf);

// Casts select nothing: they send all values, have one density and no keys.
class EveryCast : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryCast, SendsAll) {
  const CompressConfig config = MakeCompress(GetParam());
  EXPECT_TRUE(config.on());
  EXPECT_TRUE(config.rounds());
  EXPECT_FALSE(config.selects());
  EXPECT_EQ(config.DensityAt(0, 0), 1);
  EXPECT_EQ(BytesOf(config.wire()), 2);
  EXPECT_TRUE(config.compressor->rounds());
  EXPECT_EQ(config.compressor->Asked(17, 1), 17);
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryCast, ::testing::ValuesIn(CompressorNames(/*casts=*/true)));

}  // namespace
}  // namespace dtrain
