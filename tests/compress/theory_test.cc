// What is proved of the largest k of d values: how much of the sum of squares stays behind.
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

// Shi et al., theorem 1: (1 - k/d)^2 for values whose distribution is a bell.
TEST(Theory, OfNormalValuesLessThanTheSquareOfTheRestIsKept) {
  for (const double density : kTheoryDensities) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      EXPECT_LT(KeptByTopK(NormalValues(kD, seed), density), std::pow(1 - density, 2)) << density;
      EXPECT_LT(KeptByTopK(LaplaceValues(kD, seed), density), std::pow(1 - density, 2)) << density;
    }
  }
}

// The bound for all values, 1 - k/d, is reached; the one for bells does not hold.
TEST(Theory, OfEqualValuesAllTheRestIsKept) {
  const std::vector<float> equal(kD, -0.5f);
  for (const double density : kTheoryDensities) {
    EXPECT_NEAR(KeptByTopK(equal, density), 1 - density, 1e-9);
    EXPECT_GT(KeptByTopK(equal, density), std::pow(1 - density, 2));
  }
}

// The integral of x^2 up to 1 - k/d, by that up to 1.
TEST(Theory, OfUniformValuesTheCubeOfTheRestIsKept) {
  const std::vector<float> values = UniformValues(kD, 1);
  for (const double density : kTheoryDensities) {
    EXPECT_NEAR(KeptByTopK(values, density), std::pow(1 - density, 3), 5e-3) << density;
  }
}

}  // namespace
}  // namespace dtrain
