// What the tests of solvers share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/core/random.h"
#include "framework/solver/solver.h"

namespace dtrain {

// "{name: sgd, lr: 0.1}".  Throws ConfigError as a run would.
inline SolverConfig ReadSolver(const std::string& section) {
  config::Document document = config::Document::FromText("solver: " + section, "test.yaml");
  SolverConfig config = ReadSolverConfig(document.root().Section("solver"));
  document.Finish();
  return config;
}

inline std::vector<float> RandomVector(int64_t count, uint64_t stream, float low = -1) {
  const Random random(5, Purpose::kSelfTest, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[i] = random.Uniform(i, low, 1);
  return values;
}

// Any number of threads writes the same bits and notices a NaN.  Two parameters, the second of
// which does not decay; solver vectors start at 0 or above.
inline void ExpectThreadsChangeNothing(const Solver& solver) {
  constexpr int64_t kCount = 100'003, kFirst = kCount - 3;
  const ArenaLayout layout = {
      {{"a.weight", {kFirst}, {0, kFirst}, true}, {"a.bias", {3}, {kFirst, kCount}, false}}};
  const std::vector<float> gradient = RandomVector(kCount, 1);
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    std::vector<float> w = RandomVector(kCount, 2);
    std::vector<std::vector<float>> vectors;
    std::vector<float*> state;
    for (size_t k = 0; k < solver.StateNames().size(); ++k) {
      vectors.push_back(RandomVector(kCount, 3 + k, 0));
      state.push_back(vectors.back().data());
    }
    const UpdateArgs args = {.lr = 0.1,
                             .gradient = gradient.data(),
                             .weights_in = w.data(),
                             .weights_out = w.data(),
                             .state = state,
                             .threads = threads};
    EXPECT_TRUE(solver.Apply(layout, {0, kCount}, args));
    if (first.empty()) first = w;
    EXPECT_EQ(w, first) << threads << " threads";
    w[kCount / 3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(solver.Apply(layout, {0, kCount}, args)) << threads << " threads";
  }
}

}  // namespace dtrain
