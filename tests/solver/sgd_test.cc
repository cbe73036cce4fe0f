#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "framework/core/error.h"
#include "framework/solver/loops.h"
#include "tests/solver/solver_fixture.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<const Solver> ReadSgd(const std::string& yaml) { return ReadSolver(yaml).solver; }

TEST(Sgd, MomentumAndDecayFollowPyTorch) {
  ExpectAfterThreeSteps("{name: sgd, momentum: 0.9, weight_decay: 0.01}",
                        {0.41702136949999996f, -1.13451942875f, 1.958605578f});
}

TEST(Sgd, NesterovFollowsPyTorch) {
  ExpectAfterThreeSteps("{name: sgd, momentum: 0.9, weight_decay: 0.01, nesterov: true}",
                        {0.40405728480049996f, -1.11770210629625f, 1.9067390251020002f});
}

TEST(Sgd, WithoutMomentumKeepsNothing) {
  const auto solver = ReadSgd("{momentum: 0}");
  EXPECT_THAT(solver->StateNames(), IsEmpty());
  EXPECT_THAT(ReadSgd("{}")->StateNames(), ElementsAre("momentum"));
  const std::vector<float> gradient = {2, -4}, w = {1, 1};
  std::vector<float> out(2);
  EXPECT_TRUE(solver->Apply(TwoParameters(1, 1), {0, 2},
                            {.lr = 0.25,
                             .gradient_scale = 0.5f,
                             .gradient = gradient.data(),
                             .weights_in = w.data(),
                             .weights_out = out.data()}));
  EXPECT_THAT(out, ElementsAre(0.75f, 1.5f));
  EXPECT_THAT(w, ElementsAre(1, 1)) << "the version it read is left alone";
}

TEST(Sgd, DecayIsPerParameter) {
  const std::vector<float> gradient = {0, 0, 0, 0};
  std::vector<float> w = {1, 1, 1, 1};
  EXPECT_TRUE(ReadSgd("{momentum: 0, weight_decay: 0.5}")
                  ->Apply(TwoParameters(2, 2), {0, 4},
                          {.lr = 0.5,
                           .gradient = gradient.data(),
                           .weights_in = w.data(),
                           .weights_out = w.data()}));
  EXPECT_THAT(w, ElementsAre(0.75f, 0.75f, 1, 1));
}

TEST(Sgd, PiecesThatCutParametersGiveTheBitsOfTheWhole) {
  const auto solver = ReadSgd("{weight_decay: 0.01, nesterov: true}");
  const ArenaLayout layout = TwoParameters(100, 57);
  const std::vector<float> gradient = RandomVector(157, 1), w = RandomVector(157, 2);
  std::vector<float> whole_v = RandomVector(157, 3), cut_v = whole_v;
  std::vector<float> whole(157), cut(157);
  const auto apply = [&](Range r, std::vector<float>& v, std::vector<float>& out) {
    float* const state[] = {v.data() + r.begin};
    EXPECT_TRUE(solver->Apply(layout, r,
                              {.lr = 0.1,
                               .gradient = gradient.data() + r.begin,
                               .weights_in = w.data() + r.begin,
                               .weights_out = out.data() + r.begin,
                               .state = state}));
  };
  apply({0, 157}, whole_v, whole);
  for (const Range r : {Range{93, 130}, Range{130, 157}, Range{0, 1}, Range{1, 93}}) {
    apply(r, cut_v, cut);
  }
  EXPECT_EQ(whole, cut);
  EXPECT_EQ(whole_v, cut_v);
}

TEST(Sgd, ThreadsChangeNoBitAndMissNothing) {
  ExpectThreadsChangeNothing(*ReadSgd("{weight_decay: 0.01}"));
}

TEST(Sgd, NonFiniteWeightsAreNoticed) {
  const auto solver = ReadSgd("{momentum: 0}");
  const ArenaLayout layout = {{{"w", {40}, {0, 40}, true}}};
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t place : {0, 20, 39}) {
      std::vector<float> gradient(40, 1.0f), w(40, 3e38f);
      const UpdateArgs args = {
          .lr = 1e-3, .gradient = gradient.data(), .weights_in = w.data(), .weights_out = w.data()};
      EXPECT_TRUE(solver->Apply(layout, {0, 40}, args)) << "large is not infinite";
      gradient[place] = bad;
      EXPECT_FALSE(solver->Apply(layout, {0, 40}, args)) << bad << " at " << place;
    }
  }
}

TEST(Sgd, EveryInstructionSetGivesTheSameBits) {
  constexpr int64_t kCount = 1003;
  const std::vector<float> gradient = RandomVector(kCount, 1), w = RandomVector(kCount, 2);
  for (const SgdKind kind :
       {SgdKind::kPlain, SgdKind::kMomentum, SgdKind::kNesterov, SgdKind::kDecay}) {
    const SgdStep step = {0.1f, 0.9f, 0.0005f, 0.7f, kind};
    std::vector<float> first;
    for (int isa = 0; isa <= static_cast<int>(CpuIsa()); ++isa) {
      std::vector<float> out(kCount), velocity = RandomVector(kCount, 3);
      EXPECT_TRUE(DTRAIN_ISA_SELECT(static_cast<Isa>(isa), SgdLoop)(
          step, kCount, gradient.data(), w.data(), out.data(), velocity.data()));
      out.insert(out.end(), velocity.begin(), velocity.end());
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << IsaName(static_cast<Isa>(isa));
    }
  }
}

TEST(Sgd, ItsMomentumCanBeTakenOutUnlessItIsNesterovs) {
  const Solver::WithoutMomentum plain =
      ReadSgd("{momentum: 0.8, weight_decay: 0.5}")->TakeMomentum();
  ASSERT_NE(plain.solver, nullptr);
  EXPECT_EQ(plain.momentum, 0.8);
  EXPECT_THAT(plain.solver->StateNames(), ElementsAre("momentum")) << "that of the weight decay";
  EXPECT_THAT(ReadSgd("{momentum: 0.8}")->TakeMomentum().solver->StateNames(), IsEmpty());
  EXPECT_EQ(ReadSgd("{momentum: 0.8, nesterov: true}")->TakeMomentum().solver, nullptr);
}

// A worker's velocity of its gradients and the solver's of the weight decay are together the velocity of both, so the steps
// are those of plain SGD with momentum, but for rounding.
TEST(Sgd, TheMomentumOfTheDecayStaysWithTheSolver) {
  constexpr int64_t kCount = 50;
  const ArenaLayout layout{{{"w", {kCount}, {0, kCount}, true}}};
  const auto whole = ReadSgd("{momentum: 0.8, weight_decay: 0.5}");
  const Solver::WithoutMomentum parts = whole->TakeMomentum();
  std::vector<float> expected = RandomVector(kCount, 1), w = expected;
  std::vector<float> velocity(kCount), of_decay(kCount), of_gradients(kCount);
  for (uint64_t step = 0; step < 20; ++step) {
    const std::vector<float> gradient = RandomVector(kCount, 2 + step);
    const auto apply = [&](const Solver& solver, const std::vector<float>& from,
                           std::vector<float>& weights, std::vector<float>& state) {
      float* const vector = state.data();
      UpdateArgs args;
      args.lr = 0.1;
      args.gradient = from.data();
      args.weights_in = args.weights_out = weights.data();
      args.state = {&vector, 1};
      EXPECT_TRUE(solver.Apply(layout, {0, kCount}, args));
    };
    apply(*whole, gradient, expected, velocity);
    for (size_t i = 0; i < kCount; ++i) of_gradients[i] = 0.8f * of_gradients[i] + gradient[i];
    apply(*parts.solver, of_gradients, w, of_decay);
    for (size_t i = 0; i < kCount; ++i) ASSERT_NEAR(w[i], expected[i], 1e-5) << "step " << step;
  }
}

TEST(Sgd, NesterovNeedsMomentum) {
  EXPECT_THAT(WhatOf<ConfigError>([] { ReadSgd("{momentum: 0, nesterov: true}"); }),
              HasSubstr("nesterov needs a momentum above 0"));
}

}  // namespace
}  // namespace dtrain
