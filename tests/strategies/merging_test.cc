// Tests merge plans against the model's golden values, exhaustive search and its bounds.
#include "framework/strategies/sync/merging.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace dtrain {
namespace {

// GoogLeNet on a K80, batch 64, fp32, in backward order: elements, and microseconds of the backward pass (from the
// trace of the authors' B-Caffe).
struct TracedLayer {
  int64_t elements;
  double backward_us;
};
constexpr TracedLayer kGoogLeNet[] = {
    {1025024, 475}, {106624, 2665},  {153728, 1283}, {40000, 1456}, {663936, 2387}, {159936, 3442},
    {319872, 2932}, {106624, 2529},  {102528, 1011}, {26688, 1206}, {461120, 2217}, {133312, 3302},
    {213248, 4040}, {67712, 3394},   {102528, 2614}, {16960, 1777}, {461120, 5227}, {84672, 4526},
    {135424, 5738}, {1025024, 513},  {2098176, 716}, {67712, 1536}, {32832, 2258},  {51264, 1520},
    {16448, 1815},  {373568, 4858},  {73920, 3930},  {57472, 2741}, {32832, 2266},  {38464, 1442},
    {12352, 1697},  {295168, 3338},  {65664, 3147},  {65664, 3174}, {32832, 2196},  {38464, 1430},
    {12352, 1637},  {226048, 3089},  {57472, 3208},  {82112, 4263}, {1025024, 473}, {2098176, 712},
    {65664, 1430},  {30784, 2186},   {19264, 863},   {7744, 1475},  {179968, 2951}, {46208, 2592},
    {92352, 4273},  {16448, 3532},   {76928, 3039},  {8256, 3315},  {221376, 7481}, {32896, 4340},
    {32896, 4284},  {6208, 1979},    {12864, 1104},  {3136, 1888},  {110720, 6151}, {18560, 2940},
    {12352, 2627},  {110784, 20739}, {4160, 3773},   {9472, 15162}};

ReadyGradients GoogLeNet() {
  ReadyGradients gradients;
  double backward = 0;
  for (const TracedLayer& layer : kGoogLeNet) backward += layer.backward_us * 1e-6;
  double now = backward / 2;  // time of the forward pass, as in the authors' script
  for (const TracedLayer& layer : kGoogLeNet) {
    now += layer.backward_us * 1e-6;
    gradients.bytes.push_back(4 * layer.elements);
    gradients.ready.push_back(now);
  }
  return gradients;
}

// The fixed threshold of the golden table: a group is closed when it has this many bytes.
MergePlan MergeUpTo(const ReadyGradients& gradients, int64_t threshold_bytes) {
  MergePlan plan;
  int64_t bytes = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    bytes += gradients.bytes[i];
    if (bytes < threshold_bytes && i + 1 < gradients.size()) continue;
    plan.push_back(i + 1);
    bytes = 0;
  }
  return plan;
}

ReduceTime Line(double a, double b) {
  return [=](int64_t bytes) { return a + b * static_cast<double>(bytes); };
}

// The authors' 10 gigabit cluster: seconds, and seconds per byte.
constexpr double kAlpha = 45.25e-6;
constexpr double kBeta = 1.2 / (9.0 * (1 << 30) / 8);
constexpr double kGamma = 160 / 64e9;

ReduceTime Ring(int ranks) {
  return Line(2.0 * (ranks - 1) * kAlpha, (2 * kBeta + kGamma) * (ranks - 1) / ranks);
}

ReduceTime DoubleTrees(int ranks) { return Line(2 * kAlpha * std::log2(ranks), kBeta + kGamma); }

double Milliseconds(const ReadyGradients& gradients, const ReduceTime& time,
                    const MergePlan& plan) {
  return 1e3 * StepEnd(gradients, time, plan);
}

struct Golden {
  int ranks;
  double none, all, upto_4mb, rule;
  size_t rule_groups;
  double best;
  size_t best_groups;
};

TEST(Merging, GoogLeNetOverARingTakesTheGoldenTimes) {
  const ReadyGradients gradients = GoogLeNet();
  ASSERT_EQ(gradients.size(), 64u);
  const Golden table[] = {{2, 303.63, 423.61, 303.67, 303.63, 33, 303.63, 33},
                          {4, 303.85, 483.82, 303.91, 303.85, 10, 303.85, 10},
                          {8, 352.28, 514.19, 320.73, 316.00, 6, 315.53, 6},
                          {16, 413.62, 529.93, 342.98, 336.41, 6, 334.88, 6},
                          {32, 513.79, 538.88, 364.96, 360.80, 5, 348.60, 5},
                          {64, 702.89, 545.52, 397.67, 403.75, 3, 366.50, 5},
                          {128, 1075.45, 553.19, 457.47, 525.01, 2, 392.23, 4},
                          {256, 1817.77, 565.71, 574.25, 565.71, 1, 420.55, 3},
                          {512, 3300.99, 589.35, 806.40, 589.35, 1, 480.01, 3},
                          {1024, 6266.73, 635.92, 1269.99, 635.92, 1, 568.16, 2},
                          {2048, 12197.85, 728.71, 2196.83, 728.71, 1, 712.14, 2}};
  for (const Golden& golden : table) {
    SCOPED_TRACE(golden.ranks);
    const ReduceTime time = Ring(golden.ranks);
    const auto of = [&](const MergePlan& plan) { return Milliseconds(gradients, time, plan); };
    EXPECT_NEAR(of(MergeNone(gradients)), golden.none, 0.01);
    EXPECT_NEAR(of(MergeAll(gradients)), golden.all, 0.01);
    EXPECT_NEAR(of(MergeUpTo(gradients, 64 << 20)), golden.all, 0.01);
    EXPECT_NEAR(of(MergeUpTo(gradients, 4 << 20)), golden.upto_4mb, 0.01);
    const MergePlan rule = MergeByRule(gradients, time), best = MergeBest(gradients, time);
    EXPECT_NEAR(of(rule), golden.rule, 0.01);
    EXPECT_EQ(rule.size(), golden.rule_groups);
    EXPECT_NEAR(of(best), golden.best, 0.01);
    EXPECT_EQ(best.size(), golden.best_groups);
  }
}

TEST(Merging, GoogLeNetsGroupsAreTheGoldenOnes) {
  const ReadyGradients gradients = GoogLeNet();
  EXPECT_EQ(MergeUpTo(gradients, 4 << 20).size(), 10u);
  EXPECT_EQ(MergeByRule(gradients, Ring(8)), (MergePlan{1, 8, 17, 26, 52, 64}));
  EXPECT_EQ(MergeByRule(gradients, Ring(64)), (MergePlan{18, 52, 64}));
}

// Groups that keep the channel busy end at the same time wherever they are cut, so several plans are the best.  The
// rounding of one program's sums chose the golden ones; they must cost the same as ours.
TEST(Merging, GoogLeNetsBestGroupsAreAsGoodAsTheGoldenOnes) {
  const ReadyGradients gradients = GoogLeNet();
  struct {
    int ranks;
    MergePlan golden, ours;
  } const cases[] = {{8, {1, 8, 12, 21, 49, 64}, {1, 5, 12, 21, 49, 64}},
                     {64, {1, 7, 21, 41, 64}, {1, 7, 20, 41, 64}}};
  for (const auto& [ranks, golden, ours] : cases) {
    SCOPED_TRACE(ranks);
    const ReduceTime time = Ring(ranks);
    EXPECT_EQ(MergeBest(gradients, time), ours);
    const double seconds = StepEnd(gradients, time, golden);
    EXPECT_NEAR(StepEnd(gradients, time, ours), seconds, 1e-13 * seconds);
  }
}

TEST(Merging, TheUnitOfTimeDoesNotChooseAmongEqualPlans) {
  const ReadyGradients seconds = GoogLeNet();
  ReadyGradients micros = seconds;
  for (double& ready : micros.ready) ready *= 1e6;
  for (const int ranks : {2, 4, 8, 16, 32, 64, 128, 256}) {
    const ReduceTime time = Ring(ranks);
    EXPECT_EQ(MergeBest(seconds, time),
              MergeBest(micros, [&](int64_t bytes) { return 1e6 * time(bytes); }))
        << ranks;
  }
}

TEST(Merging, GoogLeNetOverDoubleTreesTakesTheGoldenTimes) {
  const ReadyGradients gradients = GoogLeNet();
  const Golden table[] = {{8, 305.96, 490.68, 0, 303.86, 9, 303.86, 9},
                          {64, 323.33, 490.95, 0, 304.13, 8, 304.13, 8},
                          {512, 340.71, 491.23, 0, 304.40, 8, 304.40, 8},
                          {2048, 352.29, 491.41, 0, 304.58, 8, 304.58, 8}};
  for (const Golden& golden : table) {
    SCOPED_TRACE(golden.ranks);
    const ReduceTime time = DoubleTrees(golden.ranks);
    const auto of = [&](const MergePlan& plan) { return Milliseconds(gradients, time, plan); };
    EXPECT_NEAR(of(MergeNone(gradients)), golden.none, 0.01);
    EXPECT_NEAR(of(MergeAll(gradients)), golden.all, 0.01);
    EXPECT_NEAR(of(MergeByRule(gradients, time)), golden.rule, 0.01);
    EXPECT_EQ(MergeByRule(gradients, time).size(), golden.rule_groups);
    EXPECT_NEAR(of(MergeBest(gradients, time)), golden.best, 0.01);
    EXPECT_EQ(MergeBest(gradients, time).size(), golden.best_groups);
  }
}

TEST(Merging, TheRuleIsNotOptimal) {
  const ReadyGradients gradients{{1, 1, 1}, {1, 4, 7}};
  const ReduceTime time = Line(4, 1);
  EXPECT_EQ(MergeByRule(gradients, time), (MergePlan{3}));
  EXPECT_EQ(StepEnd(gradients, time, {3}), 14);
  EXPECT_EQ(MergeBest(gradients, time), (MergePlan{1, 3}));
  EXPECT_EQ(StepEnd(gradients, time, {1, 3}), 13);
}

// As measured: vectors of up to 16 KB take one round, with a fifth of the start-up time of all others.
double OneRoundOrTwo(int64_t bytes) {
  return (bytes <= 16 << 10 ? 1e-3 : 5e-3) + 1e-9 * static_cast<double>(bytes);
}

TEST(Merging, TheRulesStartUpIsThatOfLongVectors) {
  EXPECT_NEAR(StartUp(Line(5e-3, 1e-9)), 5e-3, 1e-12);
  EXPECT_NEAR(StartUp(OneRoundOrTwo), 5e-3, 1e-12);
  EXPECT_EQ(StartUp([](int64_t bytes) { return bytes < (1 << 20) ? 0 : 1e-3; }), 0);
}

// The second gradient is ready 3 ms after the first.  That is less than the start-up time that merging saves, and more
// than an empty vector would take.
TEST(Merging, TheRuleMergesWhereSmallVectorsAreCheap) {
  const ReadyGradients gradients{{1 << 20, 1 << 20}, {0, 3e-3}};
  EXPECT_EQ(MergeByRule(gradients, OneRoundOrTwo), (MergePlan{2}));
  EXPECT_EQ(MergeByRule({{1 << 20, 1 << 20}, {0, 6e-3}}, OneRoundOrTwo), (MergePlan{1, 2}));
}

// The all-reduce of a small gradient ends after 1 ms, before the next gradient is ready, though that comes sooner than the
// start-up time of long vectors: nothing would be saved by waiting.
TEST(Merging, TheRuleSendsWhatEndsBeforeTheNextIsReady) {
  EXPECT_EQ(MergeByRule({{8 << 10, 1 << 20}, {0, 3e-3}}, OneRoundOrTwo), (MergePlan{1, 2}));
  EXPECT_EQ(MergeByRule({{8 << 10, 1 << 20}, {0, 0.5e-3}}, OneRoundOrTwo), (MergePlan{2}));
}

// A random instance with up to ten gradients and a non-linear T(M).
struct Instance {
  ReadyGradients gradients;
  ReduceTime time;

  // Coefficients of a line that is a lower bound of T(M).
  double a, b;

  explicit Instance(uint32_t seed) {
    std::mt19937 random(seed);
    const auto upto = [&](double most) {
      return std::uniform_real_distribution<double>(0, most)(random);
    };
    double now = upto(5);
    for (int count = 1 + static_cast<int>(random() % 10); count > 0; --count) {
      gradients.bytes.push_back(static_cast<int64_t>(random() % 1000));
      gradients.ready.push_back(now += random() % 4 == 0 ? 0 : upto(3));
    }
    a = upto(4), b = upto(0.01);
    const double jump = upto(2);
    const auto from = static_cast<int64_t>(random() % 2000);
    time = [line = Line(a, b), jump, from](int64_t bytes) {
      return line(bytes) + (bytes > from ? jump : 0);
    };
  }
};

// Returns the end of the best of all 2^(n-1) plans.
double ExhaustiveBest(const Instance& instance) {
  const size_t count = instance.gradients.size();
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t cuts = 0; cuts < 1u << (count - 1); ++cuts) {
    MergePlan plan;
    for (size_t i = 1; i < count; ++i) {
      if (cuts >> (i - 1) & 1) plan.push_back(i);
    }
    plan.push_back(count);
    best = std::min(best, StepEnd(instance.gradients, instance.time, plan));
  }
  return best;
}

TEST(Merging, TheBestPlanIsThatOfExhaustiveSearch) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Instance instance(seed);
    const MergePlan best = MergeBest(instance.gradients, instance.time);
    const double exhaustive = ExhaustiveBest(instance);
    ASSERT_NEAR(StepEnd(instance.gradients, instance.time, best), exhaustive, 1e-11 * exhaustive)
        << seed;
  }
}

TEST(Merging, PlansCoverAllGradientsOnceAndNoneBeatsTheBest) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Instance instance(seed);
    const auto& [gradients, time, a, b] = instance;
    const double best = StepEnd(gradients, time, MergeBest(gradients, time)) * (1 - 1e-11);
    for (const MergePlan& plan :
         {MergeNone(gradients), MergeAll(gradients), MergeUpTo(gradients, 1200),
          MergeByRule(gradients, time), MergeBest(gradients, time)}) {
      ASSERT_EQ(plan.back(), gradients.size());
      ASSERT_TRUE(std::is_sorted(plan.begin(), plan.end(), std::less_equal<>()));
      ASSERT_LE(best, StepEnd(gradients, time, plan));
    }
    ASSERT_GE(StepEnd(gradients, time, MergeNone(gradients), MergeStart::kAfterBackward),
              StepEnd(gradients, time, MergeNone(gradients)));
  }
}

// Returns a lower bound of the end: the last gradient is sent after it is ready, and all bytes are sent, in at least
// one message, after the first is ready.
double Bound(const ReadyGradients& gradients, double a, double b) {
  const auto total = static_cast<double>(
      std::accumulate(gradients.bytes.begin(), gradients.bytes.end(), int64_t{0}));
  const double last = a + b * static_cast<double>(gradients.bytes.back());
  return std::max(gradients.ready.back() + last, gradients.ready.front() + a + b * total);
}

TEST(Merging, NoPlanEndsBeforeTheBound) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Instance instance(seed);
    const double end = ExhaustiveBest(instance);
    ASSERT_GE(end * (1 + 1e-11), Bound(instance.gradients, instance.a, instance.b)) << seed;
  }
  const ReadyGradients gradients = GoogLeNet();
  for (int ranks = 2; ranks <= 2048; ranks *= 2) {
    const ReduceTime time = Ring(ranks);
    const double bound = Bound(gradients, time(0), (time(1 << 30) - time(0)) / (1 << 30));
    EXPECT_GE(StepEnd(gradients, time, MergeBest(gradients, time)), bound) << ranks;
  }
}

// A single gradient reaches both bounds, and so does a model whose gradients are ready at once.
TEST(Merging, TheBoundIsReached) {
  const ReadyGradients one{{100}, {3}}, at_once{{10, 20, 30}, {5, 5, 5}};
  for (const ReadyGradients& gradients : {one, at_once}) {
    EXPECT_DOUBLE_EQ(StepEnd(gradients, Line(2, 0.5), MergeBest(gradients, Line(2, 0.5))),
                     Bound(gradients, 2, 0.5));
  }
}

TEST(Merging, StartUpsDecideBetweenTheExtremes) {
  const ReadyGradients gradients = GoogLeNet();
  const ReduceTime free_start = Line(0, 1e-9), dear_start = Line(1e3, 1e-9);
  EXPECT_DOUBLE_EQ(StepEnd(gradients, free_start, MergeBest(gradients, free_start)),
                   StepEnd(gradients, free_start, MergeNone(gradients)));
  EXPECT_EQ(MergeBest(gradients, dear_start), MergeAll(gradients));
  EXPECT_EQ(MergeByRule(gradients, dear_start), MergeAll(gradients));
}

TEST(Merging, WithoutOverlapEverythingWaitsForTheLastGradient) {
  const ReadyGradients gradients{{10, 20}, {1, 5}};
  EXPECT_EQ(StepEnd(gradients, Line(1, 1), {1, 2}, MergeStart::kAfterBackward), 5 + 11 + 21);
  EXPECT_EQ(StepEnd(gradients, Line(1, 1), {1, 2}), 12 + 21);
}

// With T(M) = 1 + M the first bucket is in flight until 24; the second has waited since 5.
TEST(Merging, ABucketIsSentWhenItIsReadyAndTheOneBeforeHasArrived) {
  LayerGradients layer_gradients;
  layer_gradients.ranges = {{0, 2}, {2, 2}, {2, 5}, {5, 6}};
  layer_gradients.ready = {1, 2, 3, 5};
  layer_gradients.reduce_seconds = Line(1, 1);
  const auto sendings = SendingsOf(layer_gradients, {{0, 5}, {5, 6}});
  ASSERT_EQ(sendings.size(), 2u);
  EXPECT_EQ(sendings[0].gradients, 2u);
  EXPECT_EQ(sendings[0].bytes, 20);
  EXPECT_EQ(sendings[0].ready, 3);
  EXPECT_EQ(sendings[0].begin, 3);
  EXPECT_EQ(sendings[0].end, 24);
  EXPECT_EQ(sendings[1].gradients, 1u);
  EXPECT_EQ(sendings[1].ready, 5);
  EXPECT_EQ(sendings[1].begin, 24);
  EXPECT_EQ(sendings[1].end, 29);
  EXPECT_EQ(PredictStep(layer_gradients, {{0, 5}, {5, 6}}), 29);
  EXPECT_EQ(SendingsOf(layer_gradients, {{0, 5}, {5, 6}}, MergeStart::kAfterBackward)[0].begin, 5);
}

TEST(Merging, NoGradientsNeedNoGroup) {
  EXPECT_TRUE(MergeNone({}).empty());
  EXPECT_TRUE(MergeAll({}).empty());
  EXPECT_TRUE(MergeUpTo({}, 1).empty());
  EXPECT_TRUE(MergeByRule({}, Line(1, 1)).empty());
  EXPECT_TRUE(MergeBest({}, Line(1, 1)).empty());
  EXPECT_EQ(StepEnd({}, Line(1, 1), {}), 0);
}

}  // namespace
}  // namespace dtrain
