// Tests what is measured before the first step.
#include "framework/train/step_profile.h"

#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "framework/train/ready_times.h"
#include "tests/support/counting_transport.h"

namespace dtrain {
namespace {

// Returns the bytes that rank 0 of two sends while T(M) of LeNet-5's gradients is measured with a ring.  A ring's T(M)
// has no step, so that all forms are measured at the same sizes.
int64_t BytesToMeasure(const std::string& compress) {
  config::Document document = config::Document::FromText(
      "model: lenet5\ndata: digits\nbatch: 4\ncluster: {workers: 2}\nstrategy: {name: mgwfbp}\n"
      "collective: ring\ncompress: " +
          compress + "\n",
      DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
  const RunConfig config = ReadRunConfig(document);
  const Graph graph = ReadModel(config);
  const ExecutionPlan plan = DecidePlan(config, graph, 2, 1);
  const BoundarySchedule rule{.epoch_samples = 1000, .batch = 4, .last_samples = 1000};
  int64_t bytes = 0;
  LocalWorld::Run(2, [&](Transport& transport) {
    CountingTransport counting(transport);
    const auto table = MeasureAllReduceTimes(counting, ExchangeOf(config, graph, plan, rule));
    ASSERT_TRUE(table.has_value());
    EXPECT_GE(table->entries.back().bytes, graph.weights().size() * 4) << "up to all gradients";
    if (transport.rank() == 0) bytes = counting.of_steps().bytes_sent;
  });
  return bytes;
}

// Sums are measured in the form that the run uses: with 16 bits a number, or with selected entries.
TEST(StepProfile, SumsAreMeasuredInTheFormInWhichTheyAreSent) {
  const auto dense = static_cast<double>(BytesToMeasure("none"));
  for (const std::string cast : {"fp16", "bf16"}) {
    EXPECT_NEAR(static_cast<double>(BytesToMeasure(cast)) / dense, 0.5, 0.05) << cast;
  }
  EXPECT_LT(static_cast<double>(BytesToMeasure("{name: topk, density: 0.01}")) / dense, 0.05);
}

TEST(ReadyTimes, AreTheMediansOfTheLastSteps) {
  const LayerGradients layer_gradients{{{0, 10}, {10, 30}, {30, 30}, {30, 40}}};
  ReadyTimes times(layer_gradients, 3);
  for (int step = 0; step < 5; ++step) {
    times.BeginStep();
    times.Ready({0, 5});
    times.Ready({5, 30});
    times.Ready({30, 40});
  }
  EXPECT_EQ(times.steps(), 3U);
  const std::vector<double> medians = times.Medians();
  ASSERT_EQ(medians.size(), 4U);
  EXPECT_GT(medians[0], 0);
  EXPECT_EQ(medians[0], medians[1]) << "both were complete with the second range";
  EXPECT_EQ(medians[1], medians[2]) << "empty ones are there with the one before";
  EXPECT_GE(medians[3], medians[2]);
}

}  // namespace
}  // namespace dtrain
