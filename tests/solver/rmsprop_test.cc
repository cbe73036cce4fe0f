#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "framework/core/error.h"
#include "framework/solver/loops.h"
#include "tests/solver/solver_fixture.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RmsProp, FollowsPyTorch) {
  ExpectAfterThreeSteps("{name: rmsprop}", {-0.279490775f, -0.810463699f, 1.129486309f}, 2e-6f);
  ExpectAfterThreeSteps("{name: rmsprop, weight_decay: 0.01}",
                        {-0.249445024f, -0.791687974f, 1.111031476f}, 2e-6f);
  ExpectAfterThreeSteps("{name: rmsprop, momentum: 0.9}",
                        {-2.275384530f, 0.451318426f, 0.273729227f}, 2e-6f);
  ExpectAfterThreeSteps(
      "{name: rmsprop, alpha: 0.5, epsilon: 0.001, momentum: 0.3, weight_decay: 0.02}",
      {0.329340193f, -1.171074772f, 1.851032536f}, 2e-6f);
}

// Implements the formulas of rmsprop.cc again, in double.
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
    SolverArenas arenas(*solver);
    std::vector<RmspropReference> reference;
    for (int64_t i = 0; i < 157; ++i) {
      reference.push_back({momentum, i < 100 ? 0.02 : 0, arenas.w[i]});
    }
    for (int64_t step = 0; step < 60; ++step) {
      const std::vector<float> gradient = RandomVector(157, 100 + step);
      const double lr = 0.01 / static_cast<double>(1 + step);
      EXPECT_TRUE(arenas.Apply({0, 157}, gradient, {.lr = lr, .gradient_scale = 0.5f}));
      for (int64_t i = 0; i < 157; ++i) reference[i].Step(0.5 * gradient[i], lr);
    }
    for (int64_t i = 0; i < 157; ++i) EXPECT_NEAR(arenas.w[i], reference[i].w, 2e-6) << i;
  }
}

TEST(RmsProp, PiecesThatCutParametersGiveTheBitsOfTheWhole) {
  ExpectPiecesGiveTheBitsOfTheWhole(
      *ReadSolver("{name: rmsprop, momentum: 0.9, weight_decay: 0.1}").solver);
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
  ExpectNonFiniteWeightsAreNoticed(*ReadSolver("{name: rmsprop}").solver);
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
      ADD_FAILURE() << wrong << " is no error";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(wrong, std::strchr(wrong, ':'))));
    }
  }
}

}  // namespace
}  // namespace dtrain
