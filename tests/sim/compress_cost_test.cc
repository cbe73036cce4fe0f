// Tests the time that measured compressor costs add to a run in virtual time, to the nanosecond.
#include <gtest/gtest.h>

#include "framework/sim/simulation.h"
#include "tests/sim/scenario.h"

namespace dtrain {
namespace {

constexpr int64_t kScenarioSteps = 500;  // of a Scenario

// A selection from n values takes 100 us + n x 10 ns.
CompressCost LinearCost(const std::string& name) {
  return {.compressor = name,
          .samples = {{.density = 0.1, .entries = 500, .seconds = 105e-6},
                      {.density = 0.1, .entries = 2000, .seconds = 120e-6}}};
}

struct RunTimes {
  Nanos time = 0;
  Nanos longest = 0;  // SimulationResult::compress_longest
};

// Passes over memory take no time here: 8000 bytes at 1e6 GB/s are less than half a nanosecond.
RunTimes TimedRun(const std::string& strategy, const std::string& compress,
                  const CompressCost& cost, bool numeric = false) {
  Scenario scenario(strategy, 4);
  scenario.setup.cluster.memory_gbyte_s = 1e6;
  ExchangeSpec& spec = scenario.setup.exchange;
  spec.actors.compress = MakeCompress(compress);
  spec.compress_cost = cost;
  NormalGradients source;
  const std::vector<float> weights(kSize, 1.0f);
  if (numeric) {
    scenario.setup.source = &source;
    spec.start.weights = weights;
  }
  const SimulationResult result = scenario.Run();
  return {result.time, result.compress_longest};
}

TEST(MeasuredCost, AStepTakesLongerByWhatTheFileSays) {
  for (const char* strategy : {"allreduce", "ps_asp"}) {
    const std::string compress = "{name: topk, density: 0.1}";
    const RunTimes none = TimedRun(strategy, compress, {});
    const RunTimes measured = TimedRun(strategy, compress, LinearCost("topk"));
    EXPECT_EQ(measured.time - none.time, kScenarioSteps * (100'000 + 1000 * 10)) << strategy;
    EXPECT_LT(none.longest, 10);
    EXPECT_EQ(measured.longest, kScenarioSteps * 110'000) << strategy;
  }
}

TEST(MeasuredCost, ANumericRunTakesTheTimeOfAGhost) {
  const std::string compress = "{name: topk, density: 0.1}";
  const RunTimes ghost = TimedRun("allreduce", compress, LinearCost("topk"));
  EXPECT_EQ(TimedRun("allreduce", compress, LinearCost("topk"), true).longest, ghost.longest);
}

// Layers of 400 and 600 values: each has the fixed part.
TEST(MeasuredCost, EachUnitIsASelection) {
  const std::string compress = "{name: topk, density: 0.1, scope: layer}";
  const Nanos more = TimedRun("allreduce", compress, LinearCost("topk")).time -
                     TimedRun("allreduce", compress, {}).time;
  EXPECT_EQ(more, kScenarioSteps * (2 * 100'000 + 1000 * 10));
}

// Between the measured densities 0.1 and 0.3, where a selection takes 110 and 210 us.
TEST(MeasuredCost, ADensityBetweenThoseOfTheFileCostsWhatLiesBetween) {
  CompressCost cost = LinearCost("topk");
  cost.samples.push_back({.density = 0.3, .entries = 1000, .seconds = 210e-6});
  const std::string compress = "{name: topk, density: 0.2}";
  const Nanos more =
      TimedRun("allreduce", compress, cost).time - TimedRun("allreduce", compress, {}).time;
  EXPECT_EQ(more, kScenarioSteps * 160'000);
}

TEST(MeasuredCost, ACastCostsItsRounding) {
  const CompressCost cost{.compressor = "fp16", .samples = {{.entries = 1000, .seconds = 7e-6}}};
  const Nanos more = TimedRun("allreduce", "{name: fp16}", cost).time -
                     TimedRun("allreduce", "{name: fp16}", {}).time;
  EXPECT_EQ(more, kScenarioSteps * 7000);
}

// Encoding in one round (ef_signsgd) or two (powersgd), then decoding what four workers send.
TEST(MeasuredCost, ACoderCostsItsEncodingAndItsDecoding) {
  for (const char* name : {"ef_signsgd", "powersgd"}) {
    const CompressCost cost{
        .compressor = name,
        .samples = {{.workers = 2, .entries = 1000, .seconds = 40e-6, .decode_seconds = 100e-6},
                    {.workers = 8, .entries = 1000, .seconds = 40e-6, .decode_seconds = 400e-6}}};
    const std::string compress = std::string("{name: ") + name + "}";
    const Nanos more =
        TimedRun("allreduce", compress, cost).time - TimedRun("allreduce", compress, {}).time;
    EXPECT_EQ(more, kScenarioSteps * (40'000 + 200'000)) << name;
  }
}

TEST(MeasuredCost, APlannerReckonsWithIt) {
  for (const auto& [compress, name] :
       {std::pair("{name: gaussiank, density: 0.1}", "gaussiank"), {"{name: bf16}", "bf16"}}) {
    Scenario scenario("mgwfbp", 4);
    scenario.FreeLink();
    scenario.setup.exchange.actors.compress = MakeCompress(compress);
    const ReduceTime before = TimedLayerGradients(scenario.setup).reduce_seconds;
    scenario.setup.exchange.compress_cost = LinearCost(name);
    const ReduceTime after = TimedLayerGradients(scenario.setup).reduce_seconds;
    for (const int64_t n : {400, 1000, 1600}) {
      const double more = after(4 * n) - before(4 * n);
      EXPECT_NEAR(more, 100e-6 + static_cast<double>(n) * 10e-9, 1e-12) << name << ' ' << n;
    }
    EXPECT_EQ(after(0), before(0));
  }
}

// A second worker's wait does not hide a step's cost, and a whole gradient (density 1) has none.
TEST(MeasuredCost, AWholeGradientCostsNoSelection) {
  const std::string compress = "{name: topk, density: 0.1, dense_steps: 100}";
  const Nanos more = TimedRun("allreduce", compress, LinearCost("topk")).time -
                     TimedRun("allreduce", compress, {}).time;
  EXPECT_EQ(more, (kScenarioSteps - 100) * 110'000);
}

}  // namespace
}  // namespace dtrain
