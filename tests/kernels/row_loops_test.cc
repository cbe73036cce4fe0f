// Tests the vectorised functions (vector_math.h) through the loops that use them.
#include "framework/kernels/cpu/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace dtrain {
namespace {

float TanhOf(Isa isa, float x) {
  float y = 0;
  DTRAIN_ISA_SELECT(isa, TanhForward)(&x, 1, &y);
  return y;
}

// With n = 0 and a previous state of 1 a GRU returns its update gate, which is the logistic
// function.
float SigmoidOf(Isa isa, float x) {
  float row[4] = {0, x, 0, 0}, state = 0;
  const float from_state[3] = {0, 0, 0}, before = 1;
  DTRAIN_ISA_SELECT(isa, GruForward)(row, from_state, &before, 1, &state);
  return state;
}

TEST(RowLoops, TanhAndSigmoidAreAccurate) {
  for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
    for (int i = -4000; i <= 4000; ++i) {
      for (const float scale : {1e-5f, 1e-3f, 1e-2f}) {
        const float x = static_cast<float>(i) * scale;
        const double tanh = std::tanh(static_cast<double>(x));
        EXPECT_NEAR(TanhOf(static_cast<Isa>(isa), x), tanh, 3e-7 * std::abs(tanh)) << x;
        const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x)));
        EXPECT_NEAR(SigmoidOf(static_cast<Isa>(isa), x), sigmoid, 3e-7 * sigmoid) << x;
      }
    }
  }
}

TEST(RowLoops, EndsOfTheLineAndNans) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
    EXPECT_EQ(TanhOf(static_cast<Isa>(isa), kInfinity), 1);
    EXPECT_EQ(TanhOf(static_cast<Isa>(isa), -kInfinity), -1);
    EXPECT_EQ(TanhOf(static_cast<Isa>(isa), 0), 0);
    EXPECT_TRUE(std::isnan(TanhOf(static_cast<Isa>(isa), std::nanf(""))));
    EXPECT_EQ(SigmoidOf(static_cast<Isa>(isa), kInfinity), 1);
    EXPECT_LT(SigmoidOf(static_cast<Isa>(isa), -kInfinity), 1e-37f);
    EXPECT_TRUE(std::isnan(SigmoidOf(static_cast<Isa>(isa), std::nanf(""))));
  }
}

// No product and sum are fused, and every lane does the same operations, so all instruction sets
// give the same bits.
TEST(RowLoops, BitsDoNotDependOnTheInstructionSet) {
  std::vector<float> x(1001);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 100 - 5;
  std::vector<float> first(x.size());
  isa_baseline::TanhForward(x.data(), 1001, first.data());
  for (int isa = 1; isa <= static_cast<int>(CpuIsa()); ++isa) {
    std::vector<float> y(x.size());
    DTRAIN_ISA_SELECT(static_cast<Isa>(isa), TanhForward)(x.data(), 1001, y.data());
    EXPECT_EQ(y, first) << IsaName(static_cast<Isa>(isa));
  }
}

TEST(RowLoops, SumColumnsAddsRowsInOrder) {
  const std::vector<float> x = {1, 2, 9, 3, 4, 9, 5, 6, 9};
  std::vector<float> sum = {100, 100};
  DTRAIN_ISA_SELECT(CpuIsa(), SumColumns)(x.data(), 3, 3, 2, false, sum.data());
  EXPECT_EQ(sum, (std::vector<float>{9, 12}));
  DTRAIN_ISA_SELECT(CpuIsa(), SumColumns)(x.data(), 3, 3, 2, true, sum.data());
  EXPECT_EQ(sum, (std::vector<float>{18, 24}));
}

}  // namespace
}  // namespace dtrain
