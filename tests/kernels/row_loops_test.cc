// Tests the vectorised functions (vector_math.h) through the loops that use them.
#include "framework/kernels/cpu/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace dtrain {
namespace {

// A GRU that gets nothing from its state leaves n = tanh(x) in its row.
float TanhOf(Isa isa, float x) {
  float row[4] = {0, 0, x, 0}, state = 0;
  const float from_state[3] = {0, 0, 0}, before = 0;
  DTRAIN_ISA_SELECT(isa, GruForward)(row, from_state, &before, 1, &state);
  return row[2];
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
  constexpr int64_t kHidden = 1001;
  std::vector<float> first;
  for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
    std::vector<float> row(kGruRow * kHidden), from_state(3 * kHidden), state(kHidden);
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % kHidden) / 100 - 5;
    const auto forward = DTRAIN_ISA_SELECT(static_cast<Isa>(isa), GruForward);
    forward(row.data(), from_state.data(), state.data(), kHidden, state.data());
    if (isa == 0) first = row;
    EXPECT_EQ(row, first) << IsaName(static_cast<Isa>(isa));
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
