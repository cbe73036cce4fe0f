// Tests the proven bounds of top-k selection: which part of the sum of squares stays unsent when
// the k largest of d values are sent.
#include <gtest/gtest.h>

#include "tests/compress/values.h"

namespace dtrain {
namespace {

constexpr int64_t kD = 100'000;
constexpr double kTheoryDensities[] = {0.001, 0.003, 0.01, 0.03, 0.1};

double KeptByTopK(const std::vector<float>& values, double density) {
  static const CompressConfig config = MakeCompress("topk");
  return PartKept(values, SelectFrom(*config.compressor, values, density, {}));
}

// Shi et al., theorem 1: the bound is (1 - k/d)^2 for values with a bell-shaped distribution.
TEST(Theory, OfNormalValuesLessThanTheSquareOfTheRestIsKept) {
  for (const double density : kTheoryDensities) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      EXPECT_LT(KeptByTopK(NormalValues(kD, seed), density), std::pow(1 - density, 2)) << density;
      EXPECT_LT(KeptByTopK(LaplaceValues(kD, seed), density), std::pow(1 - density, 2)) << density;
    }
  }
}

// Equal values reach 1 - k/d, the bound for all values, and break the one for bell-shaped
// distributions.
TEST(Theory, OfEqualValuesAllTheRestIsKept) {
  const std::vector<float> equal(kD, -0.5f);
  for (const double density : kTheoryDensities) {
    EXPECT_NEAR(KeptByTopK(equal, density), 1 - density, 1e-9);
    EXPECT_GT(KeptByTopK(equal, density), std::pow(1 - density, 2));
  }
}

// The unsent part is the integral of x^2 up to 1 - k/d, divided by the integral up to 1.
TEST(Theory, OfUniformValuesTheCubeOfTheRestIsKept) {
  const std::vector<float> values = UniformValues(kD, 1);
  for (const double density : kTheoryDensities) {
    EXPECT_NEAR(KeptByTopK(values, density), std::pow(1 - density, 3), 5e-3) << density;
  }
}

}  // namespace
}  // namespace dtrain
