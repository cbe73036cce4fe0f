// Whole runs on sentences: terms, lengths, validation, BLEU, vocabularies.
#include <gmock/gmock.h>

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/comm/local/local_world.h"
#include "framework/core/file.h"
#include "framework/evaluate/translator.h"
#include "framework/setup/run_setup.h"
#include "framework/simulate/simulated_run.h"
#include "tests/runtime/run_fixture.h"
#include "tests/support/toy_translation.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class TranslationTest : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    WriteToyTranslation(folder_, 400);
  }

  RunConfig Config(const std::string& output, int workers, std::vector<std::string> more = {}) {
    std::vector<std::string> overrides = {"output=" + (folder_ / output).string(),
                                          "data.root=" + folder_.string(),
                                          "model.name=" + (folder_ / "toy.yaml").string(),
                                          fmt::format("cluster.workers={}", workers),
                                          "threads=1",
                                          "log_first_steps=1000"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    config::Document document = config::Document::FromText(
        "model: {name: x}\ndata: {name: multi30k}\nbatch: 32\nepochs: 2\n"
        "solver: {name: adam, lr: 0.01, clip_norm: 1}\n",
        "run.yaml", overrides);
    return ReadRunConfig(document);
  }
};

TEST_F(TranslationTest, LearnsAndSaysHowWell) {
  const TrainResult result = Run(Config("run", 1, {"epochs=25"}));
  EXPECT_EQ(result.code, ExitCode::kDone);
  const std::vector<nlohmann::json> steps = Lines("run", "step");
  EXPECT_NEAR(steps.front()["loss"], std::log(12), 0.2);  // a word, of twelve
  EXPECT_LT(steps.back()["loss"], 0.2);
  ASSERT_TRUE(result.summary.test && result.summary.test->bleu && result.summary.test->perplexity);
  EXPECT_GT(*result.summary.test->bleu, 90);
  EXPECT_LT(*result.summary.test->perplexity, 1.3);
  EXPECT_DOUBLE_EQ(*result.summary.test->perplexity, std::exp(result.summary.test->loss));
  ASSERT_TRUE(result.summary.best && result.summary.best->perplexity);
  const std::vector<nlohmann::json> evaluations = Lines("run", "evaluation");
  ASSERT_EQ(evaluations.size(), 26u);
  EXPECT_EQ(evaluations[0]["split"], "validation");
  EXPECT_FALSE(evaluations[0].contains("bleu"));
  EXPECT_EQ(evaluations[25]["split"], "test");
  EXPECT_EQ(evaluations[25]["bleu"], *result.summary.test->bleu);
}

// Without dropout, workers have the same samples, lengths and divisor; each rank's sum of gradients is rounded
// differently.
TEST_F(TranslationTest, ThreeWorkersFollowTheLossesOfOne) {
  const TrainResult one = Run(Config("one", 1)), three = Run(Config("three", 3));
  const auto alone = Lines("one", "step"), together = Lines("three", "step");
  ASSERT_EQ(alone.size(), together.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_NEAR(alone[i]["loss"].get<double>(), together[i]["loss"].get<double>(), 2e-3) << i;
  }
  EXPECT_NEAR(one.summary.test->loss, three.summary.test->loss, 1e-2);
}

TEST_F(TranslationTest, EvaluationDoesNotDependOnTheNumberOfRanks) {
  const RunConfig config = Config("run", 1);
  const auto dataset = LoadData(config);
  const Graph graph = ReadModel(config, dataset->fields());
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(1, weights.data());
  std::vector<Evaluation> found;
  std::vector<double> bleu;
  for (int ranks = 1; ranks <= 3; ++ranks) {
    LocalWorld::Run(ranks, [&](Transport& transport) {
      Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
      const int rank = transport.rank();
      const Evaluation evaluation = JoinEvaluations(
          transport, *dataset,
          EvaluateBlocks(net, *dataset, Split::kTest, weights.data(), nullptr, rank, ranks));
      const BleuCounts counts =
          JoinCounts(transport, TranslateSplit(net, *dataset, Split::kTest, weights.data(), nullptr,
                                               rank, ranks, {.beam = 2, .max_length = 5}));
      if (rank > 0) return;
      found.push_back(evaluation);
      bleu.push_back(static_cast<double>(counts.matches[0]));
    });
  }
  for (const Evaluation& evaluation : found) {
    EXPECT_EQ(evaluation.loss, found[0].loss);
    EXPECT_EQ(evaluation.terms, found[0].terms);
  }
  EXPECT_EQ(bleu[1], bleu[0]);
  EXPECT_EQ(bleu[2], bleu[0]);
}

// `data.limit` shortens the splits for everything that is measured.
TEST_F(TranslationTest, BleuIsOfTheSentencesThatALimitLeaves) {
  const RunConfig config = Config("run", 1, {"batch=8", "data.limit=10"});
  const auto dataset = LoadData(config);
  ASSERT_EQ(dataset->size(Split::kTest), 10);
  ASSERT_GT(dataset->sentence_pairs()->size(Split::kTest), 10);
  const Graph graph = ReadModel(config, dataset->fields());
  std::vector<float> weights(static_cast<size_t>(graph.weights().size()));
  graph.InitializeWeights(1, weights.data());
  Net net(graph, {DeviceKind::kCpu, 1, CpuIsa()});
  int64_t words = 0;
  for (int64_t i = 0; i < 10; ++i) {
    words += static_cast<int64_t>(dataset->sentence_pairs()->Reference(Split::kTest, i).size());
  }
  const BleuCounts counts =
      TranslateSplit(net, *dataset, Split::kTest, weights.data(), nullptr, 0, 1);
  EXPECT_EQ(counts.reference_length, words);
}

TEST_F(TranslationTest, WeightsOfOtherVocabulariesAreRefused) {
  Run(Config("run", 1, {"max_steps=3"}));
  const fs::path latest = FindCheckpoint((folder_ / "run").string());
  EXPECT_EQ(TextInfoFromText(ReadStoredInfo(latest).text, "c").target.size(), 12);
  fs::remove_all(folder_ / "multi30k");
  WriteToyTranslation(folder_, 400, "x");
  TrainRequest request;
  request.weights = (folder_ / "run").string();
  EXPECT_THAT(MessageOf([&] { Run(Config("other", 1), request); }),
              AllOf(HasSubstr("6: checkpoint " + latest.string()),
                    HasSubstr("has other vocabularies than the data set: 12 and 12 words, "),
                    HasSubstr(" there, 12 and 12 words, ")));
}

TEST_F(TranslationTest, AResumedRunGoesOnToTheBit) {
  const std::string whole = Run(Config("whole", 2, {"epochs=3"})).summary.weights_sha256;
  Run(Config("part", 2, {"epochs=3", "max_steps=17"}));
  TrainRequest request;
  request.resume = "auto";
  EXPECT_EQ(Run(Config("part", 2, {"epochs=3"}), request).summary.weights_sha256, whole);
}

// One worker's asynchronous steps are equal in a real and a simulated run.  Rank 0 logs each step, except perhaps the
// last; the simulation reports their mean.
TEST_F(TranslationTest, AsynchronousAndSimulatedRunsReportALossPerWord) {
  const auto ssp = [](const std::string& steps) {
    return std::vector<std::string>{"strategy={name: ps_ssp, placement: colocated}",
                                    "max_steps=" + steps};
  };
  Run(Config("longer", 1, ssp("4")));
  const std::vector<nlohmann::json> steps = Lines("longer", "step");
  ASSERT_GE(steps.size(), 3u);
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) sum += steps[i]["loss"].get<double>();
  EXPECT_NEAR(steps.front()["loss"], std::log(12), 0.1);  // nothing learnt, of twelve words
  const Summary real = Run(Config("real", 1, ssp("3"))).summary;
  const RunConfig alone = Config("sim", 1, ssp("3"));
  const Summary simulated = SimulatedRun(alone, std::nullopt, true).Run();
  EXPECT_NEAR(*simulated.train_loss, sum / 3, 1e-12);
  EXPECT_EQ(simulated.test->loss, real.test->loss);
  // A sentence has 4.5 words including its end: a loss per sentence would be 4.5 times as large.
  const RunConfig three = Config("three", 3, ssp("3"));
  const Summary of_three = SimulatedRun(three, std::nullopt, true).Run();
  EXPECT_NEAR(*of_three.train_loss, std::log(12), 0.15);
  EXPECT_NEAR(of_three.test->loss, real.test->loss, 0.05);
}

// The run evaluates on the validation split during training, and on the test split, with BLEU, at its end; the best
// weights are those of the validation split.
TEST_F(TranslationTest, ASimulatedRunIsEvaluatedAsARealOne) {
  const std::vector<std::string> long_enough = {"epochs=6"};
  const Summary real = Run(Config("real", 1, long_enough)).summary;
  const RunConfig config = Config("sim", 1, long_enough);
  SimulatedRun run(config, std::nullopt, true);
  std::vector<Split> splits;
  const Summary simulated = run.Run(
      [&](const MetricsPoint&, Split split, const Evaluation&) { splits.push_back(split); });
  EXPECT_EQ(std::count(splits.begin(), splits.end(), Split::kValidation), 6);
  EXPECT_EQ(std::count(splits.begin(), splits.end(), Split::kTest), 1);
  EXPECT_EQ(splits.back(), Split::kTest);
  EXPECT_EQ(simulated.weights_sha256, real.weights_sha256);
  EXPECT_EQ(*simulated.test->bleu, *real.test->bleu);
  EXPECT_EQ(*simulated.test->perplexity, *real.test->perplexity);
  EXPECT_EQ(*simulated.best->perplexity, *real.best->perplexity);
  EXPECT_EQ(simulated.best->epoch, real.best->epoch);
}

}  // namespace
}  // namespace dtrain
