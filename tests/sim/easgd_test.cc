// Tests easgd in virtual time against a plain loop: workers of known speeds meet the centre in a known order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/sim/known_order.h"

namespace dtrain {
namespace {

struct Ended {
  std::vector<float> centre;
  int64_t samples = 0, meetings = 0;
};

struct Elastic {
  int servers;
  const char* placement;
  int64_t period;
  double beta;
};
void PrintTo(const Elastic& way, std::ostream* out) {
  *out << fmt::format("{} {} servers, period {}, beta {}", way.servers, way.placement, way.period,
                      way.beta);
}

// Ends the workers' steps in the order of their times, until the steps that have started have all samples of the run.
Ended PlainLoop(const plain::Model& start, const Elastic& way) {
  const size_t workers = kSlowdown.size();
  const auto rate = static_cast<float>(way.beta / static_cast<double>(workers));
  const auto keep = static_cast<float>(1 - way.beta / static_cast<double>(workers));
  std::vector<plain::Model> models(workers, start);
  // Samples: of a worker since its last meeting; of all up to their last meetings, and as far as a worker knows.  What it
  // hears in a meeting counts from the end of its next step on.
  std::vector<int64_t> own(workers, 0), known(workers, 0), counted(workers, 0);
  int64_t all = 0;
  std::vector<int64_t> steps(workers, 0);
  std::vector<double> ends = kSlowdown;
  Ended result{.centre = start.weights};
  int64_t started = 0;
  for (size_t w = 0; w < workers; ++w) started += SamplesOf(static_cast<int>(w));
  constexpr double kIdle = 1e9;
  const auto blend = [&](size_t w, Range range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      float &x = models[w].weights[i], &centre = result.centre[i];
      const float moved = keep * x + rate * centre;
      centre = keep * centre + rate * x;
      x = moved;
    }
  };
  const auto meet = [&](size_t w) {
    ++result.meetings;
    all += std::exchange(own[w], 0);
    known[w] = std::max(known[w], all);
    blend(w, {0, kSize});
  };
  for (;;) {
    const auto next = std::min_element(ends.begin(), ends.end());
    if (*next == kIdle) break;
    const auto w = static_cast<int>(next - ends.begin());
    plain::Model& mine = models[w];
    const std::vector<float> gradient = plain::GradientOf(w, steps[w], mine.weights.data(), kSize);
    mine.samples = counted[w];
    mine.Update(gradient, 0, plain::Shortening(start.rule, plain::Norm(gradient)));
    result.samples += SamplesOf(w);
    own[w] += SamplesOf(w);
    counted[w] = known[w] += SamplesOf(w);
    if (++steps[w] % way.period == 0) meet(w);
    if (started >= kLastSamples) {
      *next = kIdle;
    } else {
      *next += kSlowdown[w];
      started += SamplesOf(w);
    }
  }
  // At the end every worker brings what it has learned since its last meeting.  A colocated server hears first of the worker
  // on its own rank, and then of the others in their order.
  for (int server = 0; server < way.servers; ++server) {
    const Range shard = SplitEvenly({0, kSize}, way.servers, server);
    std::vector<size_t> order;
    if (std::string(way.placement) == "colocated") {
      order.push_back(static_cast<size_t>(server) * workers / static_cast<size_t>(way.servers));
    }
    for (size_t w = 0; w < workers; ++w) {
      if (order.empty() || order[0] != w) order.push_back(w);
    }
    for (const size_t w : order) {
      if (own[w] > 0) blend(w, shard);
    }
  }
  result.meetings +=
      std::count_if(own.begin(), own.end(), [](int64_t samples) { return samples > 0; });
  return result;
}

class EasgdTest : public ::testing::TestWithParam<std::tuple<Elastic, plain::Rule>> {};

TEST_P(EasgdTest, TheCentreIsThatOfThePlainLoop) {
  const auto& [way, rule] = GetParam();
  Scenario scenario("easgd", 3,
                    fmt::format("servers: {}, placement: {}, period: {}, beta: {}", way.servers,
                                way.placement, way.period, way.beta));
  const SimulationResult result = RunInKnownOrder(scenario, rule);

  const Ended expected = PlainLoop(StartOfKnownOrder(rule), way);
  EXPECT_EQ(result.end.samples_applied, expected.samples);
  EXPECT_EQ(result.protocol.Total("meetings"), expected.meetings);
  ASSERT_EQ(result.weights.size(), expected.centre.size());
  double squares = 0;
  for (size_t i = 0; i < kSize; ++i) {
    squares += std::pow(double{result.weights[i]} - expected.centre[i], 2);
  }
  EXPECT_LT(std::sqrt(squares), 1e-6 * plain::Norm(expected.centre));
}

INSTANTIATE_TEST_SUITE_P(
    All, EasgdTest,
    ::testing::Combine(::testing::Values(Elastic{1, "dedicated", 1, 0.9},
                                         Elastic{3, "dedicated", 2, 0.9},
                                         Elastic{2, "colocated", 3, 0.5},
                                         Elastic{1, "dedicated", 50, 0.9}),
                       ::testing::Values(plain::Steps(), plain::ClippedCosine(), plain::Adam(5))));

// A meeting moves worker and centre by the same length in opposite directions.
TEST(Easgd, AMeetingKeepsTheSum) {
  Scenario scenario("easgd", 1, "period: 1, beta: 0.3");
  SimulationSetup& setup = scenario.setup;
  setup.exchange.solver = MakeSolver("{name: sgd, lr: 0.1, momentum: 0}");
  setup.exchange.rule.batch = 8;
  setup.exchange.rule.last_samples = 14;
  KnownSource source;
  const std::vector<float> initial = plain::InitialWeights(kSize);
  setup.source = &source;
  setup.exchange.start.weights = initial;
  const SimulationResult result = scenario.Run();
  // The first step leads from x0 to x1 = x0 - 0.1 g; the centre moves by 0.3 (x1 - x0), the worker back by as much, and
  // the second step begins there.
  std::vector<float> x = initial, centre = initial;
  for (int step = 0; step < 2; ++step) {
    const std::vector<float> gradient = plain::GradientOf(0, step, x.data(), kSize);
    for (size_t i = 0; i < kSize; ++i) {
      const float moved = x[i] - 0.1f * gradient[i];
      const float sum = moved + centre[i];
      centre[i] += 0.3f * (moved - centre[i]);
      x[i] = sum - centre[i];
    }
  }
  for (size_t i = 0; i < kSize; ++i) ASSERT_NEAR(result.weights[i], centre[i], 1e-5) << i;
}

}  // namespace
}  // namespace dtrain
