// Compares batch normalisation over all workers - several nets that sum their statistics, each in a
// thread - with one net that has the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "framework/core/random.h"
#include "framework/nn/kernel.h"
#include "framework/nn/net.h"
#include "tests/nn/reference_net.h"
#include "tests/support/thread_sums.h"

namespace dtrain {
namespace {

constexpr int64_t kSharedSamples = 11;

const std::vector<FieldSpec> kSharedImages = {{"data", DType::kF32, {3, 8, 8}},
                                              {"label", DType::kI32, {}}};

// The model has norms with and without a ReLU behind them, on images (in any format that the net
// chooses) and on vectors.
constexpr char kSharedModel[] = R"(
name: small
layers:
  - {name: conv, type: convolution, outputs: 6, kernel: 3, pad: 1}
  - {name: norm, type: batch_norm}
  - {name: relu, type: relu}
  - {name: conv2, type: convolution, outputs: 20, kernel: 3, stride: 2, pad: 1}
  - {name: norm2, type: batch_norm}
  - {name: flat, type: flatten}
  - {name: fc, type: inner_product, outputs: 9}
  - {name: norm3, type: batch_norm}
  - {name: relu3, type: relu}
  - {name: fc2, type: inner_product, outputs: 4}
  - {name: loss, type: softmax_cross_entropy, input: [fc2, label]}
)";

struct SharedBatch {
  SharedBatch() : images(kSharedSamples * 192), labels(kSharedSamples) {
    const Random random(3, Purpose::kSelfTest);
    for (size_t i = 0; i < images.size(); ++i) images[i] = 5 + random.Normal(i);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 4);
  }
  std::vector<float> images;
  std::vector<int32_t> labels;
};

struct SharedStep {
  double loss = 0;
  std::vector<float> gradients, state;
};

SharedStep StepOf(const Graph& graph, SharedBatch& data, Range rows, int threads,
                  WorkerSums* sums) {
  Net net(graph, {DeviceKind::kCpu, threads, CpuIsa()});
  std::vector<float> weights = InitialWeights(graph, 5);
  SharedStep result;
  result.gradients.resize(weights.size());
  result.state.resize(static_cast<size_t>(graph.state().size()));
  graph.InitializeState(result.state.data());
  const Tensor fields[] = {{data.images.data() + rows.begin * 192, {rows.size(), 3, 8, 8}},
                           {data.labels.data() + rows.begin, {rows.size()}, DType::kI32}};
  NetInput input;
  input.fields = fields;
  input.samples = rows.size();
  input.first_position = rows.begin;
  input.global_samples = kSharedSamples;
  input.worker_sums = sums;
  result.loss =
      net.Step(weights.data(), result.gradients.data(), result.state.data(), input, nullptr)
          .loss_sum;
  return result;
}

void ExpectClose(const std::vector<float>& got, const std::vector<float>& want) {
  double squares = 0;
  for (const float w : want) squares += static_cast<double>(w) * w;
  const double rms = std::sqrt(squares / static_cast<double>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-5 * (rms + std::abs(want[i]))) << i;
  }
}

// Expects shares of these sizes together to give the results of the whole batch.
void ExpectAsWhole(const std::vector<int64_t>& shares, int threads = 1) {
  Graph graph = Graph::FromText(kSharedModel, "m.yaml", kSharedImages);
  SharedBatch data;
  const SharedStep local = StepOf(graph, data, {0, kSharedSamples}, 1, nullptr);
  graph.SyncWorkers();
  EXPECT_TRUE(graph.syncs_workers());
  const SharedStep alone = StepOf(graph, data, {0, kSharedSamples}, threads, nullptr);
  EXPECT_NEAR(alone.loss, local.loss, 1e-4) << "one worker's is the usual batch norm";
  ExpectClose(alone.gradients, local.gradients);
  ExpectClose(alone.state, local.state);

  const int workers = static_cast<int>(shares.size());
  ThreadSums sums(workers);
  std::vector<SharedStep> results(shares.size());
  std::vector<std::thread> running;
  int64_t first = 0;
  for (int w = 0; w < workers; ++w) {
    const Range rows = {first, first + shares[w]};
    first = rows.end;
    running.emplace_back([&, w, rows] {
      OneOfThreads mine(sums, w);
      results[w] = StepOf(graph, data, rows, threads, &mine);
    });
  }
  for (std::thread& thread : running) thread.join();
  double loss = 0;
  std::vector<float> gradients(alone.gradients.size());
  for (const SharedStep& result : results) {
    loss += result.loss;
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] += result.gradients[i];
    EXPECT_EQ(result.state, results[0].state) << "all workers have the same running statistics";
  }
  EXPECT_NEAR(loss, alone.loss, 1e-4);
  ExpectClose(gradients, alone.gradients);
  // The sums are in double, so rounded to float they do not depend on the division of the batch.
  EXPECT_EQ(results[0].state, alone.state);
}

TEST(SyncBatchNorm, SharesTogetherDoWhatTheWholeBatchDoes) {
  ExpectAsWhole({6, 5});
  ExpectAsWhole({4, 4, 3}, 2);
  ExpectAsWhole({1, 10});
}

TEST(SyncBatchNorm, AWorkerWithoutSamplesTakesPart) {
  ExpectAsWhole({7, 0, 4});
  ExpectAsWhole({0, 11});
}

// The last micro-batch of a short batch may be empty on all workers.
TEST(SyncBatchNorm, APartThatIsEmptyEverywhereLeavesTheStatistics) {
  Graph graph = Graph::FromText(kSharedModel, "m.yaml", kSharedImages);
  graph.SyncWorkers();
  SharedBatch data;
  ThreadSums sums(1);
  OneOfThreads mine(sums, 0);
  std::vector<float> initial(static_cast<size_t>(graph.state().size()));
  graph.InitializeState(initial.data());
  EXPECT_EQ(StepOf(graph, data, {0, 0}, 1, &mine).state, initial);
}

TEST(SyncBatchNorm, StepsRepeatToTheBit) {
  Graph graph = Graph::FromText(kSharedModel, "m.yaml", kSharedImages);
  graph.SyncWorkers();
  SharedBatch data;
  const SharedStep first = StepOf(graph, data, {0, kSharedSamples}, 2, nullptr);
  for (int again = 0; again < 5; ++again) {
    const SharedStep result = StepOf(graph, data, {0, kSharedSamples}, 2, nullptr);
    EXPECT_EQ(result.loss, first.loss);
    EXPECT_EQ(result.gradients, first.gradients);
  }
}

}  // namespace
}  // namespace dtrain
