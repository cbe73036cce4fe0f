#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "framework/core/error.h"
#include "framework/solver/loops.h"
#include "tests/solver/solver_fixture.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

// Two parameters; the second one does not decay.
const ArenaLayout kTwoParameters = {
    {{"a.weight", {100}, {0, 100}, true}, {"a.bias", {57}, {100, 157}, false}}};

// Weights and the solver's vectors.
struct RmspropArenas {
  std::vector<float> w = RandomVector(157, 1), square = std::vector<float>(157), b = square;

  bool Apply(const Solver& solver, Range r, const std::vector<float>& gradient, double lr = 0.1,
             float scale = 1) {
    float* const state[] = {square.data() + r.begin, b.data() + r.begin};
    return solver.Apply(kTwoParameters, r,
                        {.lr = lr,
                         .gradient_scale = scale,
                         .gradient = gradient.data() + r.begin,
                         .weights_in = w.data() + r.begin,
                         .weights_out = w.data() + r.begin,
                         .state = std::span(state).first(solver.StateNames().size())});
  }
};

// Three steps at lr 0.1 of torch.optim.RMSprop in double.
void ExpectAfterThreeRmspropSteps(const std::string& yaml, const std::vector<float>& expected) {
  const auto solver = ReadSolver(yaml).solver;
  const ArenaLayout layout = {{{"w", {3}, {0, 3}, true}}};
  std::vector<float> w = {0.5f, -1.25f, 2.0f}, square(3), b(3);
  float* const state[] = {square.data(), b.data()};
  for (const std::vector<float>& g : std::vector<std::vector<float>>{
           {0.3f, -0.7f, 0.2f}, {0.1f, 0.4f, -0.6f}, {-0.2f, 0.05f, 0.9f}}) {
    EXPECT_TRUE(solver->Apply(layout, {0, 3},
                              {.lr = 0.1,
                               .gradient = g.data(),
                               .weights_in = w.data(),
                               .weights_out = w.data(),
                               .state = std::span(state).first(solver->StateNames().size())}));
  }
  EXPECT_THAT(w, Pointwise(FloatNear(2e-6f), expected)) << yaml;
}

TEST(RmsProp, FollowsPyTorch) {
  ExpectAfterThreeRmspropSteps("{name: rmsprop}", {-0.279490775f, -0.810463699f, 1.129486309f});
  ExpectAfterThreeRmspropSteps("{name: rmsprop, weight_decay: 0.01}",
                               {-0.249445024f, -0.791687974f, 1.111031476f});
  ExpectAfterThreeRmspropSteps("{name: rmsprop, momentum: 0.9}",
                               {-2.275384530f, 0.451318426f, 0.273729227f});
  ExpectAfterThreeRmspropSteps(
      "{name: rmsprop, alpha: 0.5, epsilon: 0.001, momentum: 0.3, weight_decay: 0.02}",
      {0.329340193f, -1.171074772f, 1.851032536f});
}

// The formulas of rmsprop.cc once more, in double.
struct RmspropReference {
  double momentum, decay;
  double w, square = 0, b = 0;

  void Step(double g, double lr) {
    g += decay * w;
    square = 0.9 * square + 0.1 * g * g;
    b = momentum * b + g / (std::sqrt(square) + 1e-8);
    w -= lr * b;
  }
};

TEST(RmsProp, AgreesWithDoubleAndSparesWhatDoesNotDecay) {
  for (const double momentum : {0.0, 0.8}) {
    const auto solver = ReadSolver("{name: rmsprop, alpha: 0.9, weight_decay: 0.02, momentum: " +
                                   std::to_string(momentum) + "}")
                            .solver;
    RmspropArenas arenas;
    std::vector<RmspropReference> reference;
    for (int64_t i = 0; i < 157; ++i) {
      reference.push_back({momentum, i < 100 ? 0.02 : 0, arenas.w[i]});
    }
    for (int64_t step = 0; step < 60; ++step) {
      const std::vector<float> gradient = RandomVector(157, 100 + step);
      const double lr = 0.01 / static_cast<double>(1 + step);
      EXPECT_TRUE(arenas.Apply(*solver, {0, 157}, gradient, lr, 0.5f));
      for (int64_t i = 0; i < 157; ++i) reference[i].Step(0.5 * gradient[i], lr);
    }
    for (int64_t i = 0; i < 157; ++i) EXPECT_NEAR(arenas.w[i], reference[i].w, 2e-6) << i;
  }
}

TEST(RmsProp, PiecesThatCutParametersGiveTheBitsOfTheWhole) {
  const auto solver = ReadSolver("{name: rmsprop, momentum: 0.9, weight_decay: 0.1}").solver;
  const std::vector<float> gradient = RandomVector(157, 2);
  RmspropArenas whole, cut;
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE(whole.Apply(*solver, {0, 157}, gradient));
    for (const Range r : {Range{93, 130}, Range{130, 157}, Range{0, 1}, Range{1, 93}}) {
      EXPECT_TRUE(cut.Apply(*solver, r, gradient));
    }
  }
  EXPECT_EQ(whole.w, cut.w);
  EXPECT_EQ(whole.square, cut.square);
  EXPECT_EQ(whole.b, cut.b);
}

TEST(RmsProp, EveryInstructionSetGivesTheSameBits) {
  constexpr int64_t kCount = 1003;
  const std::vector<float> gradient = RandomVector(kCount, 1), w = RandomVector(kCount, 2);
  const RmsPropStep step = {0.7f, 0.01f, 0.99f, 0.01f, 1e-8f, 0.9f, 0.02f};
  for (const bool momentum : {false, true}) {
    std::vector<float> first;
    for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
      std::vector<float> out(kCount), b = RandomVector(kCount, 3), v = RandomVector(kCount, 4, 0);
      EXPECT_TRUE(DTRAIN_ISA_SELECT(static_cast<Isa>(isa), RmsPropLoop)(
          step, kCount, gradient.data(), w.data(), out.data(), v.data(),
          momentum ? b.data() : nullptr));
      out.insert(out.end(), b.begin(), b.end());
      out.insert(out.end(), v.begin(), v.end());
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << IsaName(static_cast<Isa>(isa)) << (momentum ? ", momentum" : "");
    }
  }
}

TEST(RmsProp, ThreadsChangeNoBitAndMissNothing) {
  ExpectThreadsChangeNothing(*ReadSolver("{name: rmsprop}").solver);
  ExpectThreadsChangeNothing(*ReadSolver("{name: rmsprop, momentum: 0.9}").solver);
}

TEST(RmsProp, NonFiniteWeightsAreNoticed) {
  const auto solver = ReadSolver("{name: rmsprop}").solver;
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t place : {0, 20, 156}) {
      RmspropArenas arenas;
      std::vector<float> gradient(157, 1.0f);
      EXPECT_TRUE(arenas.Apply(*solver, {0, 157}, gradient));
      gradient[place] = bad;
      EXPECT_FALSE(arenas.Apply(*solver, {0, 157}, gradient)) << bad << " at " << place;
    }
  }
}

TEST(RmsProp, KeysAndDefaults) {
  const SolverConfig config = ReadSolver("{name: rmsprop}");
  EXPECT_EQ(config.lr, 0.01);
  EXPECT_THAT(config.solver->StateNames(), ElementsAre("square_avg"));
  EXPECT_THAT(ReadSolver("{name: rmsprop, momentum: 0.9}").solver->StateNames(),
              ElementsAre("square_avg", "momentum"));
  EXPECT_EQ(config.solver->TakeMomentum().solver, nullptr);
  for (const char* wrong : {"alpha: 1", "alpha: -0.1", "epsilon: -1", "momentum: 1",
                            "weight_decay: -1", "nesterov: true"}) {
    try {
      ReadSolver("{name: rmsprop, " + std::string(wrong) + "}");
      ADD_FAILURE() << wrong << " is no mistake";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(wrong, std::strchr(wrong, ':'))));
    }
  }
}

}  // namespace
}  // namespace dtrain
