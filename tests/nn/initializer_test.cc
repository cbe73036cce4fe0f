#include "framework/nn/initializer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"

namespace dtrain {
namespace {

using testing::HasSubstr;

constexpr int64_t kFanIn = 300, kFanOut = 200;

std::vector<float> Draw(const InitSpec& init, uint64_t seed = 1, uint64_t layer = 2,
                        uint64_t param = 0) {
  const ParamSpec spec = {"weight", {kFanOut, kFanIn}, init, kFanIn, kFanOut};
  std::vector<float> values(static_cast<size_t>(spec.shape.count()));
  Initialize(spec, seed, layer, param, values.data());
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments m;
  double squares = 0;
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    squares += v * v / static_cast<double>(values.size());
    m.largest = std::max(m.largest, std::abs(v));
  }
  m.deviation = std::sqrt(squares - m.mean * m.mean);
  return m;
}

// With 60000 draws the mean is within 5 standard errors and the deviation within 2 percent.
void ExpectMoments(const Moments& m, double deviation) {
  EXPECT_NEAR(m.mean, 0, 5 * deviation / std::sqrt(6e4));
  EXPECT_NEAR(m.deviation, deviation, 0.02 * deviation);
}

TEST(Initializer, ConstantIsTheValue) {
  const std::vector<float> values = Draw({"constant", 0.25f});
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return v == 0.25f; }));
}

TEST(Initializer, GaussianHasItsDeviation) {
  const Moments m = MomentsOf(Draw({"gaussian", 0.02f}));
  ExpectMoments(m, 0.02);
  EXPECT_GT(m.largest, 3 * 0.02) << "no tail";
}

TEST(Initializer, XavierIsUniformOverBothFans) {
  const double bound = std::sqrt(6.0 / (kFanIn + kFanOut));
  const Moments m = MomentsOf(Draw({"xavier", 0}));
  ExpectMoments(m, bound / std::sqrt(3.0));
  EXPECT_LE(m.largest, bound);
  EXPECT_GT(m.largest, 0.99 * bound);
}

TEST(Initializer, KaimingIsNormalOverTheFanIn) {
  const Moments m = MomentsOf(Draw({"kaiming", 0}));
  ExpectMoments(m, std::sqrt(2.0 / kFanIn));
  EXPECT_GT(m.largest, 3 * std::sqrt(2.0 / kFanIn));
}

TEST(Initializer, KaimingByFanOut) {
  ExpectMoments(MomentsOf(Draw({"kaiming", 0, true})), std::sqrt(2.0 / kFanOut));
}

TEST(Initializer, RepeatsExactlyAndDiffersByEveryKey) {
  const InitSpec init = {"kaiming", 0};
  EXPECT_EQ(Draw(init, 1, 2, 0), Draw(init, 1, 2, 0));
  EXPECT_NE(Draw(init, 1, 2, 0), Draw(init, 2, 2, 0));
  EXPECT_NE(Draw(init, 1, 2, 0), Draw(init, 1, 3, 0));
  EXPECT_NE(Draw(init, 1, 2, 0), Draw(init, 1, 2, 1));
}

InitSpec Read(const std::string& yaml) {
  config::Document document = config::Document::FromText("init: " + yaml, "test.yaml");
  const InitSpec spec = ReadInitSpec(document.root().Section("init"), {"xavier", 0});
  document.Finish();
  return spec;
}

TEST(Initializer, IsReadByNameOrAsASection) {
  EXPECT_EQ(Read("{}").name, "xavier");
  EXPECT_EQ(Read("kaiming").name, "kaiming");
  EXPECT_FALSE(Read("kaiming").fan_out);
  EXPECT_TRUE(Read("{name: kaiming, mode: fan_out}").fan_out);
  const InitSpec gaussian = Read("{name: gaussian, value: 0.01}");
  EXPECT_EQ(gaussian.name, "gaussian");
  EXPECT_EQ(gaussian.value, 0.01f);
}

TEST(Initializer, GaussianWantsADeviation) {
  try {
    Read("gaussian");
    FAIL() << "no error found";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("gaussian needs a standard deviation above 0 in 'value'"));
  }
}

}  // namespace
}  // namespace dtrain
