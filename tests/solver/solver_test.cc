#include "framework/solver/solver.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/random.h"
#include "tests/solver/solver_fixture.h"

namespace dtrain {
namespace {

using testing::HasSubstr;

TEST(SolverConfig, ReadsTheSectionOfTheDesign) {
  const SolverConfig config = ReadSolver(
      "{name: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.0005, clip_norm: 0, "
      "schedule: {name: step, at: [6, 8], factor: 0.1}, warmup_epochs: 0, lr_scaling: none}");
  const LearningRate lr(config, 10, 4);
  EXPECT_DOUBLE_EQ(lr.At(0), 0.02);
  EXPECT_DOUBLE_EQ(lr.At(6), 0.002);
  EXPECT_NEAR(lr.At(9), 0.0002, 1e-18);
  EXPECT_EQ(config.clip_norm, 0);
}

TEST(SolverConfig, WhatIsNotSaidChangesNothing) {
  const SolverConfig config = ReadSolver("{lr: 0.5}");
  EXPECT_EQ(config.name, "sgd");
  EXPECT_EQ(config.clip_norm, 0);
  EXPECT_EQ(config.warmup_epochs, 0);
  EXPECT_EQ(config.lr_scaling, LrScaling::kNone);
  EXPECT_EQ(LearningRate(config, 10, 4).At(9), 0.5);
}

TEST(SolverConfig, ErrorsAreReportedTogether) {
  try {
    ReadSolver("{name: sgdd, lr: -1, momentum: 1, clip_norm: -1, lr_scaling: cubic}");
    FAIL() << "no error found";
  } catch (const ConfigError& error) {
    for (const char* word : {"sgdd", "lr", "momentum", "clip_norm", "cubic"}) {
      EXPECT_THAT(error.what(), HasSubstr(word));
    }
  }
}

// A float cannot hold such a number: the weights would be infinite after one step.
TEST(SolverConfig, ARateBeyondFloatIsRefused) {
  EXPECT_EQ(ReadSolver("{lr: 3e38}").lr, 3e38);
  for (const char* section : {"{lr: 3.5e38}", "{name: sgd, lr: 1, weight_decay: 1e39}",
                              "{name: adam, lr: 1, epsilon: 1e300}"}) {
    EXPECT_THROW(ReadSolver(section), ConfigError) << section;
  }
}

TEST(LearningRate, ScalesByWorkersWhereAsked) {
  EXPECT_DOUBLE_EQ(LearningRate(ReadSolver("{lr: 0.1}"), 1, 16).At(0), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(ReadSolver("{lr: 0.1, lr_scaling: linear}"), 1, 16).At(0), 1.6);
  const LearningRate root(ReadSolver("{lr: 0.1, lr_scaling: sqrt}"), 1, 16);
  EXPECT_DOUBLE_EQ(root.At(0), 0.4);
  EXPECT_DOUBLE_EQ(root.scaling(), 4);
}

TEST(LearningRate, WarmsUpLinearlyOverItsSchedule) {
  const LearningRate lr(
      ReadSolver("{lr: 1, warmup_epochs: 2, schedule: {name: step, at: [1], factor: 0.5}}"), 10, 1);
  EXPECT_DOUBLE_EQ(lr.At(0), 0.1);
  EXPECT_DOUBLE_EQ(lr.At(0.5), 0.325);
  EXPECT_DOUBLE_EQ(lr.At(1), 0.5 * 0.55);
  EXPECT_DOUBLE_EQ(lr.At(2), 0.5);
}

TEST(Clip, ShortensLongGradientsOnly) {
  EXPECT_EQ(ClipScale(0, 1e30), 1);
  EXPECT_EQ(ClipScale(5, 25), 1);
  EXPECT_EQ(ClipScale(5, 100), 0.5f);
}

TEST(Clip, SumOfSquaresIsExactInDoubleAndTheSameEverywhere) {
  const Random random(1, Purpose::kSelfTest);
  for (const int64_t count : {0, 1, 15, 16, 17, 1000}) {
    std::vector<float> x(static_cast<size_t>(count));
    double expected = 0;
    for (int64_t i = 0; i < count; ++i) {
      x[i] = random.Uniform(i, -1, 1);
      expected += static_cast<double>(x[i]) * x[i];
    }
    const double baseline = SumOfSquares(x.data(), count, Isa::kBaseline);
    EXPECT_NEAR(baseline, expected, 1e-13 * expected);
    for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
      EXPECT_EQ(SumOfSquares(x.data(), count, static_cast<Isa>(isa)), baseline) << count;
    }
  }
}

// Element i belongs to partial sum i % 16, also in the last incomplete row.  The magnitudes differ
// so that another order of additions rounds differently.  No element past the last one is read.
TEST(Clip, SumOfSquaresAddsInTheOrderThatIsDocumented) {
  std::vector<float> x = RandomVector(64, 7);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= std::pow(10.0f, static_cast<float>(i % 7));
  for (int64_t count = 0; count < 48; ++count) {
    std::array<double, 16> sum = {};
    for (int64_t i = 0; i < count; ++i) {
      sum[i % 16] += static_cast<double>(x[i]) * x[i];
    }
    for (const int half : {8, 4, 2, 1}) {
      for (int k = 0; k < half; ++k) sum[k] += sum[k + half];
    }
    EXPECT_EQ(SumOfSquares(x.data(), count), sum[0]) << count;
  }
}

TEST(SolverRegistry, EverySolverHasHelp) {
  for (const auto& [name, entry] : SolverRegistry::All()) EXPECT_FALSE(entry.help.empty()) << name;
}

// Four parameters have factors of their own, and the ranges begin and end inside them.
TEST(LrFactor, MultipliesTheRateOfItsParameter) {
  ArenaLayout layout = {{{"a", {10}, {0, 10}, true},
                         {"b", {6}, {10, 16}, false},
                         {"c", {8}, {16, 24}, true},
                         {"d", {8}, {24, 32}, true}}};
  const double factors[] = {0.5, 0, 0, 3};
  for (size_t e = 0; e < 4; ++e) layout.entries[e].lr_factor = factors[e];
  for (const std::string& name : SolverRegistry::Names()) {
    const SolverConfig config = ReadSolver("{weight_decay: 0.1, name: " + name + "}");
    const std::vector<float> gradient = RandomVector(32, 1), before = RandomVector(32, 2);
    const size_t vectors = config.solver->StateNames().size();
    for (const Range range : {Range{0, 32}, Range{3, 29}, Range{11, 15}, Range{12, 31}}) {
      std::vector<std::vector<float>> state(vectors, std::vector<float>(32, 0.25f));
      std::vector<std::vector<float>> expected_state = state;
      std::vector<float> expected = before, found = before;
      const auto apply = [&](Range part, double lr, std::vector<float>& w,
                             std::vector<std::vector<float>>& of, const ArenaLayout& by) {
        std::vector<float*> at;
        for (auto& vector : of) at.push_back(vector.data() + part.begin);
        return config.solver->Apply(by, part,
                                    {.lr = lr,
                                     .gradient = gradient.data() + part.begin,
                                     .weights_in = before.data() + part.begin,
                                     .weights_out = w.data() + part.begin,
                                     .state = at});
      };
      ArenaLayout plain = layout;
      for (ArenaEntry& entry : plain.entries) entry.lr_factor = 1;
      for (size_t e = 0; e < 4; ++e) {
        const Range of = layout.entries[e].range;
        const Range part = {std::max(of.begin, range.begin), std::min(of.end, range.end)};
        if (part.empty() || factors[e] == 0) continue;  // weights and state stay
        EXPECT_TRUE(apply(part, 0.1 * factors[e], expected, expected_state, plain));
      }
      EXPECT_TRUE(apply(range, 0.1, found, state, layout));
      EXPECT_EQ(found, expected) << name << " from " << range.begin << " to " << range.end;
      EXPECT_EQ(state, expected_state) << name;
      for (int64_t i = 10; i < 24; ++i) EXPECT_EQ(found[i], before[i]) << name << ", a factor of 0";
    }
  }
}

// A computed update would turn -0 into 0, and a velocity that overflowed before the layer was
// frozen would spoil the weights.  So neither weights nor state are touched.
TEST(LrFactor, OfZeroKeepsWeightsAndStateToTheBit) {
  ArenaLayout layout = {{{"a", {3}, {0, 3}}, {"b", {1}, {3, 4}}}};
  layout.entries[0].lr_factor = 0;
  for (const std::string& name : SolverRegistry::Names()) {
    const SolverConfig config = ReadSolver("{weight_decay: 0.1, name: " + name + "}");
    const std::vector<float> before = {-0.0f, 1e-40f, 0.1f, 1}, gradient = {1, -1, NAN, 1};
    std::vector<std::vector<float>> state(config.solver->StateNames().size(),
                                          {INFINITY, -1, NAN, 0.5f});
    const auto kept = state;
    for (const bool in_place : {true, false}) {
      std::vector<float> weights = before, other(4);
      std::vector<float*> at;
      for (auto& vector : state) at.push_back(vector.data());
      float* const out = in_place ? weights.data() : other.data();
      EXPECT_TRUE(config.solver->Apply(layout, {0, 4},
                                       {.lr = 0.1,
                                        .gradient = gradient.data(),
                                        .weights_in = weights.data(),
                                        .weights_out = out,
                                        .state = at}));
      EXPECT_EQ(std::memcmp(out, before.data(), 3 * sizeof(float)), 0) << name;
      EXPECT_NE(out[3], before[3]) << name;
    }
    for (size_t i = 0; i < state.size(); ++i) {
      EXPECT_EQ(std::memcmp(state[i].data(), kept[i].data(), 3 * sizeof(float)), 0) << name;
    }
  }
}

}  // namespace
}  // namespace dtrain
