// Compares the solvers on the GPU with the CPU's bit for bit, and an exchange whose vectors are in
// the GPU's memory with the plain loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "framework/core/random.h"
#include "framework/device/cpu/threads.h"
#include "framework/solver/solver_loops.h"
#include "tests/exchange/loop_fixture.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

const ArenaLayout kArena{{{"a.weight", {5000}, {0, 5000}, true},
                          {"a.bias", {3}, {5000, 5003}, false},
                          {"b.weight", {90'000}, {5003, 95'003}, true}}};

std::vector<float> Numbers(uint64_t stream, float low = -1) {
  const Random random(5, Purpose::kSelfTest, stream);
  std::vector<float> values(static_cast<size_t>(kArena.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.Uniform(i, low, 1);
  return values;
}

Buffer OnDevice(const std::vector<float>& values) {
  Buffer buffer(DeviceUnderTest(), values.size() * sizeof(float));
  CopyIn(buffer.arena(), values.data(), static_cast<int64_t>(values.size()));
  return buffer;
}

std::vector<float> ValuesOf(const Buffer& buffer) {
  return FloatsOf(buffer.arena(), static_cast<int64_t>(buffer.bytes() / sizeof(float)));
}

// The weights followed by the solver's vectors, after an update of `range`.
struct Updated {
  bool finite;
  std::vector<std::vector<float>> vectors;
};

constexpr UpdateArgs kUpdate = {.lr = 0.1, .updates = 2, .gradient_scale = 0.75f};

Updated OnTheCpu(const Solver& solver, Range range, std::vector<std::vector<float>> vectors,
                 const std::vector<float>& gradient) {
  UpdateArgs args = kUpdate;
  std::vector<float*> state;
  for (size_t v = 1; v < vectors.size(); ++v) state.push_back(vectors[v].data() + range.begin);
  args.gradient = gradient.data() + range.begin;
  args.weights_in = args.weights_out = vectors[0].data() + range.begin;
  args.state = state;
  const bool finite = solver.Apply(kArena, range, args);
  return {finite, std::move(vectors)};
}

// The solvers' loops on the GPU, and steps that have one update each.
struct GpuLoops {
  StepGraph steps{DeviceUnderTest()};
  std::unique_ptr<SolverLoops> loops = MakeSolverLoops(DeviceUnderTest(), &steps);
};

Updated OnTheGpu(const Solver& solver, Range range, const std::vector<std::vector<float>>& vectors,
                 const std::vector<float>& gradient, GpuLoops& gpu) {
  std::vector<Buffer> there;
  for (const std::vector<float>& vector : vectors) there.push_back(OnDevice(vector));
  const Buffer gradient_there = OnDevice(gradient);
  UpdateArgs args = kUpdate;
  args.loops = gpu.loops.get();
  std::vector<float*> state;
  for (size_t v = 1; v < there.size(); ++v) state.push_back(there[v].f32() + range.begin);
  args.gradient = gradient_there.f32() + range.begin;
  args.weights_in = args.weights_out = there[0].f32() + range.begin;
  args.state = state;
  gpu.steps.Begin();
  EXPECT_TRUE(solver.Apply(kArena, range, args));
  gpu.steps.Launch();
  const StepResults found = gpu.steps.Wait().back();
  Updated result{found.non_finite.step == NonFinitePlace::kNone, {}};
  for (const Buffer& buffer : there) result.vectors.push_back(ValuesOf(buffer));
  return result;
}

std::vector<std::string> EverySolver() {
  std::vector<std::string> sections;
  for (const std::string& name : SolverRegistry::Names()) {
    sections.push_back("{name: " + name + "}");
    sections.push_back("{name: " + name + ", weight_decay: 0.01}");
  }
  sections.push_back("{name: sgd, momentum: 0, weight_decay: 0.01}");
  sections.push_back("{name: sgd, nesterov: true, weight_decay: 0.01}");
  sections.push_back("{name: rmsprop, momentum: 0.9, weight_decay: 0.01}");
  return sections;
}

// The parameters include one without weight decay; the ranges cover whole parameters and parts.
TEST(GpuSolver, EverySolverWritesTheCpusBits) {
  GpuLoops loops;
  const std::vector<float> gradient = Numbers(1);
  for (const std::string& section : EverySolver()) {
    const auto solver = MakeSolver(section).solver;
    std::vector<std::vector<float>> vectors = {Numbers(2)};
    for (size_t s = 0; s < solver->StateNames().size(); ++s) vectors.push_back(Numbers(3 + s, 0));
    for (const Range range : {Range{0, kArena.size()}, Range{4999, 5001}, Range{5001, 60'000}}) {
      const Updated want = OnTheCpu(*solver, range, vectors, gradient);
      const Updated got = OnTheGpu(*solver, range, vectors, gradient, loops);
      EXPECT_TRUE(got.finite) << section;
      EXPECT_TRUE(got.vectors == want.vectors)
          << section << " of [" << range.begin << ", " << range.end << ")";
      EXPECT_FALSE(got.vectors == vectors) << section;
    }
  }
}

// dtrain's threads flush denormals to zero.  A velocity that decays by a factor of 0.9 per step
// would pass through them.
TEST(GpuSolver, DenormalsAreZerosAsOnTheCpu) {
  std::thread([&] {
    GpuLoops loops;  // each thread has a queue of its own
    FlushDenormals();
    std::vector<float> tiny = Numbers(1);
    for (size_t i = 0; i < tiny.size(); ++i) tiny[i] *= i % 2 == 0 ? 3e-38f : 1e-20f;
    const auto sgd = MakeSolver("{name: sgd, momentum: 0.3, lr: 1}").solver;
    const std::vector<std::vector<float>> vectors = {tiny, tiny};
    const Range all = {0, kArena.size()};
    const Updated want = OnTheCpu(*sgd, all, vectors, tiny);
    EXPECT_TRUE(OnTheGpu(*sgd, all, vectors, tiny, loops).vectors == want.vectors);
    EXPECT_GT(std::ranges::count(want.vectors[1], 0.0f), 1000);
    const auto adam = MakeSolver("{name: adam}").solver;
    const std::vector<std::vector<float>> moments(1 + adam->StateNames().size(), Numbers(3, 0));
    EXPECT_TRUE(OnTheGpu(*adam, all, moments, tiny, loops).vectors ==
                OnTheCpu(*adam, all, moments, tiny).vectors);
  }).join();
}

TEST(GpuSolver, SaysWhatIsNotFiniteAndChangesNothingAfterwards) {
  for (const std::string& section : EverySolver()) {
    const auto solver = MakeSolver(section).solver;
    std::vector<std::vector<float>> vectors = {Numbers(2)};
    for (size_t s = 0; s < solver->StateNames().size(); ++s) vectors.push_back(Numbers(3 + s, 0));
    const Range all = {0, kArena.size()};
    for (const int64_t place : {int64_t{0}, int64_t{5001}, all.end - 1}) {
      GpuLoops loops;
      std::vector<float> gradient = Numbers(1);
      EXPECT_TRUE(OnTheGpu(*solver, all, vectors, gradient, loops).finite) << section;
      gradient[static_cast<size_t>(place)] = std::numeric_limits<float>::quiet_NaN();
      gradient.back() = std::numeric_limits<float>::infinity();
      const Updated bad = OnTheGpu(*solver, all, vectors, gradient, loops);
      EXPECT_FALSE(bad.finite) << section;
      const std::vector<std::vector<float>> want =
          OnTheCpu(*solver, all, vectors, gradient).vectors;
      EXPECT_EQ(bad.vectors[0][17], want[0][17]) << "the step itself is made";
      const Updated later = OnTheGpu(*solver, all, vectors, Numbers(1), loops);
      EXPECT_FALSE(later.finite) << section;
      EXPECT_EQ(later.vectors, vectors) << section;
      loops.steps.Begin();
      loops.steps.Launch();
      const NonFinitePlace found = loops.steps.Wait().back().non_finite;
      EXPECT_EQ(found.step, 1U);
      EXPECT_EQ(found.gradient, static_cast<unsigned long long>(place)) << section;
      EXPECT_EQ(found.weight, NonFinitePlace::kNone) << section;
    }
  }
}

TEST(GpuSolver, ClippingIsTheCpusAndRepeats) {
  for (const int64_t count : {int64_t{1}, int64_t{4095}, int64_t{4097}, kArena.size()}) {
    const std::vector<float> values = Numbers(7);
    const Buffer there = OnDevice(values);
    GpuLoops gpu;
    for (const double clip_norm : {1e-3, 0.5, 1e9}) {
      std::vector<float> factors;
      for (int i = 0; i < 3; ++i) {
        gpu.steps.Begin();
        const ClipFactor clip = gpu.loops->Clip(clip_norm, 0.5, there.f32(), count);
        gpu.steps.Launch();
        gpu.steps.Wait();
        const Arena factor = {const_cast<float*>(clip.on_device), DeviceUnderTest().queue.get()};
        factors.push_back(FloatsOf(factor, 1)[0]);
        EXPECT_EQ(clip.value, 1);
      }
      const float want = ClipScale(clip_norm, 0.25 * SumOfSquares(values.data(), count));
      EXPECT_NEAR(factors[0], want, 1e-7 * want) << count;
      EXPECT_EQ(factors[1], factors[0]);
      EXPECT_EQ(factors[2], factors[0]);
    }
  }
}

plain::Rule ClippedAdamW() {
  return {.name = "adamw",
          .lr = 0.02,
          .beta1 = 0.8,
          .beta2 = 0.99,
          .epsilon = 1e-4,
          .weight_decay = 0.1,
          .clip_norm = 5};
}

class GpuLoop : public testing::TestWithParam<plain::Rule> {};

// The loop starts from step 0, or from the weights and solver vectors that a run on the CPU left.
// At a boundary, host memory gets the vectors that a run on the CPU would have.
TEST_P(GpuLoop, EveryStepHasTheWeightsOfThePlainLoop) {
  loop::Scheme scheme{GetParam()};
  scheme.device = DeviceUnderTest();
  const auto strategy = MakeStrategy("{name: allreduce, fusion_bytes: 1300}");
  const loop::Seen seen = [](int64_t step) { return step; };
  const loop::Trace trace = loop::TraceOf(scheme, 1, false, seen);
  const auto transport = LocalWorld(1).Connect(0);
  for (const int64_t from : {0, 2, 5}) {
    loop::FollowTrace(scheme, *strategy, trace, seen, from, *transport);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, GpuLoop,
                         testing::Values(plain::Steps(), plain::ClippedCosine(), plain::Adam(),
                                         ClippedAdamW()));

}  // namespace
}  // namespace dtrain
