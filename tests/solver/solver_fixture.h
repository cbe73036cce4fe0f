// Fixtures shared by the solver tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/random.h"
#include "framework/solver/solver.h"

namespace dtrain {

// Reads a section such as "{name: sgd, lr: 0.1}".  Throws ConfigError as a run would.
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

// Weight decay applies to the first parameter only.
inline ArenaLayout TwoParameters(int64_t first, int64_t second) {
  return {{{"a.weight", {first}, {0, first}, true},
           {"a.bias", {second}, {first, first + second}, false}}};
}

// Weights and the solver's state vectors.  The state starts at 0.
struct SolverArenas {
  explicit SolverArenas(const Solver& of, ArenaLayout of_layout = TwoParameters(100, 57),
                        std::vector<float> start = RandomVector(157, 1))
      : solver(of), layout(std::move(of_layout)), w(std::move(start)) {
    state.assign(solver.StateNames().size(), std::vector<float>(w.size()));
  }

  // Updates `range` once.  `how` has the learning rate, the number of updates so far and the
  // gradient's scale.
  bool Apply(Range range, const std::vector<float>& gradient, UpdateArgs how) {
    std::vector<float*> parts;
    for (std::vector<float>& vector : state) parts.push_back(vector.data() + range.begin);
    how.gradient = gradient.data() + range.begin;
    how.weights_in = how.weights_out = w.data() + range.begin;
    how.state = parts;
    return solver.Apply(layout, range, how);
  }

  const Solver& solver;
  const ArenaLayout layout;
  std::vector<float> w;
  std::vector<std::vector<float>> state;  // in StateNames() order
};

// Compares three steps at lr 0.1 with the results of torch.optim in double.
inline void ExpectAfterThreeSteps(const std::string& section, const std::vector<float>& expected,
                                  float tolerance = 1e-6f) {
  const auto solver = ReadSolver(section).solver;
  SolverArenas arenas(*solver, {{{"w", {3}, {0, 3}, true}}}, {0.5f, -1.25f, 2.0f});
  int64_t updates = 0;
  for (const std::vector<float>& gradient : std::vector<std::vector<float>>{
           {0.3f, -0.7f, 0.2f}, {0.1f, 0.4f, -0.6f}, {-0.2f, 0.05f, 0.9f}}) {
    EXPECT_TRUE(arenas.Apply({0, 3}, gradient, {.lr = 0.1, .updates = updates++}));
  }
  EXPECT_THAT(arenas.w, testing::Pointwise(testing::FloatNear(tolerance), expected)) << section;
}

inline void ExpectPiecesGiveTheBitsOfTheWhole(const Solver& solver) {
  const std::vector<float> gradient = RandomVector(157, 2);
  SolverArenas whole(solver), cut(solver);
  for (const int64_t updates : {7, 8}) {
    const UpdateArgs how = {.lr = 0.1, .updates = updates};
    EXPECT_TRUE(whole.Apply({0, 157}, gradient, how));
    for (const Range r : {Range{93, 130}, Range{130, 157}, Range{0, 1}, Range{1, 93}}) {
      EXPECT_TRUE(cut.Apply(r, gradient, how));
    }
  }
  EXPECT_EQ(whole.w, cut.w);
  EXPECT_EQ(whole.state, cut.state);
}

inline void ExpectNonFiniteWeightsAreNoticed(const Solver& solver) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t place : {0, 20, 156}) {
      SolverArenas arenas(solver);
      std::vector<float> gradient(157, 1.0f);
      EXPECT_TRUE(arenas.Apply({0, 157}, gradient, {.lr = 0.1}));
      gradient[place] = bad;
      EXPECT_FALSE(arenas.Apply({0, 157}, gradient, {.lr = 0.1, .updates = 1}))
          << bad << " at " << place;
    }
  }
}

// Any number of threads writes the same bits and detects a NaN.  There are two parameters, and the
// second has no weight decay; the solver's vectors start with values >= 0.
inline void ExpectThreadsChangeNothing(const Solver& solver) {
  constexpr int64_t kCount = 100'003, kFirst = kCount - 3;
  const ArenaLayout layout = TwoParameters(kFirst, 3);
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
