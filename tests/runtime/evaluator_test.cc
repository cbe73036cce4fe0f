#include "framework/evaluate/evaluator.h"

#include <gtest/gtest.h>

#include "framework/comm/local/local_world.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

// Metrics and losses have equal bits for any number of ranks and threads.
TEST(Evaluator, TheSameDigitsForAnyNumberOfRanks) {
  config::Document document =
      config::Document::FromText("model: {name: " DTRAIN_SOURCE_DIR
                                 "/configs/models/lenet5.yaml}\n"
                                 "data: {name: digits, train_samples: 64, test_samples: 1111}\n"
                                 "solver: {name: sgd, lr: 0.01}\n",
                                 "run.yaml");
  const RunConfig config = ReadRunConfig(document);
  const Graph graph = ReadModel(config);
  const auto dataset = LoadData(config);
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(1, weights.data());
  std::vector<Evaluation> found;
  for (int ranks = 1; ranks <= 6; ++ranks) {
    LocalWorld::Run(ranks, [&](Transport& transport) {
      Net net(graph, {DeviceKind::kCpu, 1 + ranks % 2, CpuIsa()});
      const Evaluation evaluation =
          JoinEvaluations(transport, *dataset,
                          EvaluateBlocks(net, *dataset, Split::kTest, weights.data(), nullptr,
                                         transport.rank(), ranks));
      if (transport.rank() == ranks - 1) found.push_back(evaluation);
    });
  }
  ASSERT_EQ(found.size(), 6u);
  for (const Evaluation& evaluation : found) {
    EXPECT_EQ(evaluation.samples, 1111);
    EXPECT_EQ(evaluation.loss, found[0].loss);
    EXPECT_EQ(evaluation.metrics, found[0].metrics);
  }
}

TEST(Evaluator, NoSamplesHaveNoLoss) {
  const auto transport = LocalWorld(1).Connect(0);
  const auto digits = DatasetRegistry::Get("data set", "digits").make()->Load("", 1);
  const Evaluation evaluation = JoinEvaluations(*transport, *digits, {});
  EXPECT_EQ(evaluation.samples, 0);
  EXPECT_EQ(evaluation.loss, 0);
  EXPECT_TRUE(evaluation.metrics.empty());
}

// In the order of the blocks 1 is lost beside 1e16; in reverse order it would not be.
TEST(Evaluator, BlocksAreSummedFromTheFirst) {
  const auto transport = LocalWorld(1).Connect(0);
  const auto digits = DatasetRegistry::Get("data set", "digits").make()->Load("", 1);
  const Evaluation sum = JoinEvaluations(
      *transport, *digits, {{2, 0, 0, -1e16, {0}}, {0, 1, 1, 1, {1}}, {1, 0, 0, 1e16, {0}}});
  EXPECT_EQ(sum.samples, 1);
  EXPECT_EQ(sum.loss, 0);
  EXPECT_EQ(sum.metrics, std::vector<double>{1});
}

// Sums are computed block by block: their last bits depend on the block size.
TEST(Evaluator, BlocksHaveTheirSizes) {
  config::Document document = config::Document::FromText("data: {train_samples: 4}", "test");
  config::Reader reader = document.root().Section("data");
  const auto digits = DatasetRegistry::Get("data set", "digits").make();
  digits->Configure(reader);
  EXPECT_EQ(EvaluationBlockOf(*digits->Load("", 1)), 256);
  const SentencePairs sentences({}, {});
  EXPECT_EQ(EvaluationBlockOf(sentences), 64);
}

}  // namespace
}  // namespace dtrain
