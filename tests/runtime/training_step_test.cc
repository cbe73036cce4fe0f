// Tests the step between net and exchange.
#include "framework/train/training_step.h"

#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"
#include "framework/setup/run_exchange.h"
#include "framework/setup/run_setup.h"
#include "tests/support/lazy_queue.h"

namespace dtrain {
namespace {

// The exchange gets a range only when its gradients are written, at whatever time the device does it.
TEST(TrainingStep, WaitsForTheDeviceBeforeItAnnouncesAGradient) {
  constexpr int64_t kSamples = 4;
  config::Document document = config::Document::FromText(
      "model: lenet5\ndata: digits\nbatch: 4\n", DTRAIN_SOURCE_DIR "/configs/runs/small.yaml");
  const RunConfig config = ReadRunConfig(document);
  const Graph graph = ReadModel(config);
  const ExecutionPlan plan = DecidePlan(config, graph, 1, 1);
  const auto queue = std::make_shared<LazyQueue>();
  Device device = DeviceOf(plan);
  device.queue = queue;
  Net net(graph, device);
  const int before = queue->recorded;
  const std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  const auto transport = LocalWorld(1).Connect(0);
  const BoundarySchedule rule{.epoch_samples = 1000, .batch = kSamples, .last_samples = 1000};
  ExchangeSpec spec = ExchangeOf(config, graph, plan, rule);
  spec.start.weights = weights;
  const auto exchange = MakeExchange(spec, 1, 0, *transport);
  Batch batch(config.data.source->fields(), kSamples);
  batch.Resize(kSamples);
  batch.global_samples = kSamples;
  Turn turn = exchange->Begin(kSamples);
  ForwardBackward(net, *exchange, std::move(turn.weights), batch, nullptr, 1);
  EXPECT_GT(queue->recorded, before + 2);
  // After the backward pass, the end of the copies of the gradients and that of the step are recorded.
  EXPECT_EQ(queue->backlog, queue->recorded - before - 2)
      << "the device has all of the backward pass before anybody waits";
  exchange->End({.samples = kSamples});
}

}  // namespace
}  // namespace dtrain
