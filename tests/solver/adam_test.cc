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

TEST(Adam, FollowsPyTorch) {
  ExpectAfterThreeSteps("{name: adam}", {0.290171091f, -1.116336360f, 1.919098866f});
  ExpectAfterThreeSteps("{name: adam, weight_decay: 0.01}",
                        {0.288217478f, -1.111961675f, 1.912784766f});
  ExpectAfterThreeSteps("{name: adam, beta1: 0.5, beta2: 0.9, epsilon: 0.001}",
                        {0.344634864f, -1.165608377f, 1.916822789f});
}

TEST(AdamW, FollowsPyTorch) {
  ExpectAfterThreeSteps("{name: adamw, weight_decay: 0.01}",
                        {0.288959597f, -1.112811246f, 1.913255345f});
  ExpectAfterThreeSteps("{name: adamw}",
                        {0.288959597f, -1.112811246f, 1.913255345f});  // PyTorch's default decay
}

// Implements the formulas of adam.cc again, in double.
struct Reference {
  bool decoupled;
  double decay;
  double w, m = 0, v = 0;

  void Step(double g, int64_t t, double lr) {
    if (decoupled) {
      w -= lr * decay * w;
    } else {
      g += decay * w;
    }
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double bias1 = 1 - std::pow(0.9, static_cast<double>(t));
    const double bias2 = 1 - std::pow(0.999, static_cast<double>(t));
    w -= lr / bias1 * m / (std::sqrt(v) / std::sqrt(bias2) + 1e-8);
  }
};

void ExpectAsInDouble(bool decoupled) {
  const double decay = 0.02;
  const SolverConfig config =
      ReadSolver(std::string(decoupled ? "{name: adamw" : "{name: adam") + ", weight_decay: 0.02}");
  SolverArenas arenas(*config.solver);
  std::vector<Reference> reference;
  for (int64_t i = 0; i < 157; ++i) {
    reference.push_back({decoupled, i < 100 ? decay : 0, arenas.w[i]});
  }
  for (int64_t step = 0; step < 60; ++step) {
    const std::vector<float> gradient = RandomVector(157, 100 + step);
    const double lr = 0.01 / static_cast<double>(1 + step);
    EXPECT_TRUE(
        arenas.Apply({0, 157}, gradient, {.lr = lr, .updates = step, .gradient_scale = 0.5f}));
    for (int64_t i = 0; i < 157; ++i) reference[i].Step(0.5 * gradient[i], step + 1, lr);
  }
  for (int64_t i = 0; i < 157; ++i) EXPECT_NEAR(arenas.w[i], reference[i].w, 1e-6) << i;
}

TEST(Adam, AgreesWithDoubleAndSparesWhatDoesNotDecay) { ExpectAsInDouble(false); }
TEST(AdamW, AgreesWithDoubleAndSparesWhatDoesNotDecay) { ExpectAsInDouble(true); }

TEST(Adam, PiecesThatCutParametersGiveTheBitsOfTheWhole) {
  ExpectPiecesGiveTheBitsOfTheWhole(*ReadSolver("{name: adamw, weight_decay: 0.1}").solver);
}

TEST(Adam, EveryInstructionSetGivesTheSameBits) {
  constexpr int64_t kCount = 1003;
  const std::vector<float> gradient = RandomVector(kCount, 1), w = RandomVector(kCount, 2);
  const AdamStep step = {0.7f, 0.01f, 0.999f, 0.9f, 0.999f, 0.1f, 0.001f, 0.02f, 1.5f, 1e-8f};
  std::vector<float> first;
  for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
    std::vector<float> out(kCount), m = RandomVector(kCount, 3), v = RandomVector(kCount, 4, 0);
    EXPECT_TRUE(DTRAIN_ISA_SELECT(static_cast<Isa>(isa), AdamLoop)(
        step, kCount, gradient.data(), w.data(), out.data(), m.data(), v.data()));
    out.insert(out.end(), m.begin(), m.end());
    out.insert(out.end(), v.begin(), v.end());
    if (first.empty()) first = out;
    EXPECT_EQ(out, first) << IsaName(static_cast<Isa>(isa));
  }
}

TEST(Adam, ThreadsChangeNoBitAndMissNothing) {
  ExpectThreadsChangeNothing(*ReadSolver("{name: adamw}").solver);
}

TEST(Adam, NonFiniteWeightsAreNoticed) {
  ExpectNonFiniteWeightsAreNoticed(*ReadSolver("{name: adam}").solver);
}

TEST(Adam, AZeroGradientLeavesTheWeights) {
  const auto solver = ReadSolver("{name: adam}").solver;
  SolverArenas arenas(*solver);
  const std::vector<float> before = arenas.w;
  EXPECT_TRUE(arenas.Apply({0, 157}, std::vector<float>(157), {.lr = 0.1}));
  EXPECT_EQ(arenas.w, before);
}

TEST(Adam, KeysAndDefaults) {
  const SolverConfig adam = ReadSolver("{name: adam}");
  EXPECT_EQ(adam.lr, 0.001);
  EXPECT_THAT(adam.solver->StateNames(), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_EQ(ReadSolver("{name: sgd}").lr, 0.01);
  // Each key is tried alone, because an error in a key's name lists all the other keys.
  for (const char* wrong : {"beta1: 1", "beta1: -0.1", "beta2: 1", "beta2: -0.1", "epsilon: -1",
                            "weight_decay: -1", "momentum: 0.9"}) {
    try {
      ReadSolver("{name: adam, " + std::string(wrong) + "}");
      ADD_FAILURE() << wrong << " is no error";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(wrong, std::strchr(wrong, ':'))));
    }
  }
}

}  // namespace
}  // namespace dtrain
