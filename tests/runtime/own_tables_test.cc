// Runs on the user's own tables: regression and classification, and what a checkpoint stores of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/core/random.h"
#include "framework/data/images/image_set.h"
#include "framework/evaluate/predictor.h"
#include "framework/train/auto_strategy.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;

class OwnTables : public RunFixture {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  RunConfig Config(const std::string& loss, int outputs, const std::string& data,
                   const std::vector<std::string>& settings) const {
    Write("model.yaml", fmt::format("name: line\nsample: [2]\nlayers:\n"
                                    "  - {{name: fc1, type: inner_product, outputs: {}}}\n"
                                    "  - {{name: loss, type: {}, input: [fc1, label]}}\n{}",
                                    outputs, loss,
                                    outputs > 1 ? "  - {name: accuracy, type: accuracy, input: "
                                                  "[fc1, label]}\n"
                                                : ""));
    std::vector<std::string> all = settings;
    all.push_back("output=" + (folder_ / "run").string());
    config::Document document = config::Document::FromText(
        fmt::format("model: {{name: {}}}\ndata: {{name: csv, train: {}, {}}}\nbatch: 16\n"
                    "solver: {{name: sgd, lr: 0.1}}\n",
                    (folder_ / "model.yaml").string(), (folder_ / "t.csv").string(), data),
        "run.yaml", all);
    return ReadRunConfig(document);
  }
  // Writes y = 3 a - 2 b + 1, or whether it is above 1.
  void WriteLine(bool classes) const {
    std::string text = "a,b,y\n";
    const Random random(1, Purpose::kSelfTest);
    for (uint64_t i = 0; i < 200; ++i) {
      const double a = random.Uniform(2 * i) * 10, b = random.Uniform(2 * i + 1);
      const double y = 3 * a - 2 * b + 1;
      text +=
          fmt::format("{},{},{}\n", a, b, classes ? (y > 15 ? "high" : "low") : std::to_string(y));
    }
    Write("t.csv", text);
  }
};

TEST_F(OwnTables, ALineIsFoundByAnyNumberOfWorkers) {
  WriteLine(false);
  for (const char* workers : {"1", "2"}) {
    const TrainResult result =
        Run(Config("mean_squared_error", 1, "mean: []",
                   {std::string("cluster.workers=") + workers, "epochs=30"}));
    EXPECT_EQ(result.summary.status, "completed");
    ASSERT_TRUE(result.summary.test.has_value());
    EXPECT_LT(result.summary.test->loss, 1e-4);
    Predictor predictor((folder_ / "run").string(), "cpu");
    EXPECT_NEAR(predictor.Predict(std::vector<float>{2, 0.5f})[0][0], 3 * 2 - 2 * 0.5 + 1, 0.1);
    std::filesystem::remove_all(folder_ / "run");
  }
}

// Targets are normalised for the net, and turned back in what the run and the predictor say.
TEST_F(OwnTables, LargeTargetsAreLearnedAndAnsweredInTheirUnit) {
  std::string text = "a,b,price\n";
  const Random random(2, Purpose::kSelfTest);
  for (uint64_t i = 0; i < 200; ++i) {
    const double a = random.Uniform(2 * i) * 10, b = random.Uniform(2 * i + 1);
    text += fmt::format("{},{},{}\n", a, b, 300'000 + 20'000 * a - 5'000 * b);
  }
  Write("t.csv", text);
  const TrainResult result =
      Run(Config("mean_squared_error", 1, "task: regression", {"epochs=30"}));
  ASSERT_TRUE(result.summary.test.has_value());
  EXPECT_LT(result.summary.test->loss, 100.0 * 100.0) << "the squared unit of the prices";
  EXPECT_GT(result.summary.test->loss, 0);
  Predictor predictor((folder_ / "run").string(), "cpu");
  EXPECT_NEAR(predictor.Predict(std::vector<float>{2, 0.5f})[0][0], 337'500, 300);
  const ImageSetSpec spec = predictor.images();
  EXPECT_NEAR(spec.target_mean[0], 397'500, 20'000);
  EXPECT_GT(spec.target_deviation[0], 10'000);
}

// A probability is no number to be scaled.
TEST_F(OwnTables, TargetsOfAnotherLossAreTakenAsTheyAre) {
  std::string text = "a,b,chance\n";
  const Random random(3, Purpose::kSelfTest);
  for (uint64_t i = 0; i < 100; ++i) {
    const float a = random.Uniform(2 * i), b = random.Uniform(2 * i + 1);
    text += fmt::format("{},{},{}\n", a, b, a > b ? 0.75 : 0.25);
  }
  Write("t.csv", text);
  const TrainResult result =
      Run(Config("binary_cross_entropy", 1, "task: regression", {"epochs=5"}));
  EXPECT_EQ(result.summary.status, "completed");
  Predictor predictor((folder_ / "run").string(), "cpu");
  EXPECT_THAT(predictor.images().target_mean.values(), ElementsAre(0));
  EXPECT_THAT(predictor.images().target_deviation.values(), ElementsAre(1));
  EXPECT_GT(predictor.Predict(std::vector<float>{0.9f, 0.1f})[0][0], 0.5);
}

// A model without an accuracy is evaluated by its loss: lower is better.
TEST_F(OwnTables, TheLowestLossIsBestWithoutAnAccuracy) {
  WriteLine(false);
  const TrainResult result = Run(Config(
      "mean_squared_error", 1, "validation: 0.1",
      {"checkpoint.keep_best=true", "stop.target=1e-3", "epochs=30", "evaluate.every_epochs=1"}));
  const Summary& summary = result.summary;
  EXPECT_EQ(summary.status, "completed");
  EXPECT_FALSE(summary.train_accuracy.has_value());
  ASSERT_TRUE(summary.best.has_value());
  ASSERT_TRUE(summary.best->loss.has_value());
  EXPECT_FALSE(summary.best->accuracy || summary.best->perplexity);
  EXPECT_LE(*summary.best->loss, 1e-3);
  EXPECT_TRUE(summary.target->reached);
  EXPECT_LT(summary.epochs, 30) << "which it ended before";
  EXPECT_THAT(TargetText(summary), ::testing::HasSubstr("reached the target loss of 0.001 after"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / "checkpoints" / "best.h5"));
}

TEST_F(OwnTables, PatienceGoesByTheLossWithoutAnAccuracy) {
  WriteLine(false);
  const TrainResult result = Run(Config("mean_squared_error", 1, "validation: 0.1",
                                        {"stop.patience=2", "epochs=30", "solver.lr=1e-30"}));
  EXPECT_EQ(result.summary.epochs, 3);
  EXPECT_EQ(result.summary.best->epoch, 1) << "none was lower than the first";
}

TEST_F(OwnTables, ACheckpointKnowsClassesMeanAndDeviation) {
  WriteLine(true);
  const TrainResult result = Run(Config("softmax_cross_entropy", 2, "task: auto",
                                        {"epochs=30", "stop.patience=3", "data.validation=0.1"}));
  EXPECT_EQ(result.summary.status, "completed");
  const std::string run = (folder_ / "run").string();
  const ImageSetSpec spec = ImageSetSpecFromText(ReadStoredInfo(FindWeights(run)).images, "facts");
  EXPECT_TRUE(spec.numbers);
  EXPECT_EQ(spec.image_shape, Shape{2});
  EXPECT_THAT(spec.class_names, ElementsAre("high", "low"));
  EXPECT_NEAR(spec.mean[0], 5, 0.6);
  EXPECT_NEAR(spec.mean[1], 0.5, 0.06);
  Predictor predictor(run, "cpu");
  EXPECT_EQ(predictor.ClassName(0), "high");
  const auto answers = predictor.Predict(std::vector<float>{9, 0, 1, 1});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_GT(answers[0][0], 0.9);
  EXPECT_LT(answers[1][0], 0.1);
}

// Choosing the schedule of `auto` keeps the loaded data, since the file may be large.
TEST_F(OwnTables, AreNotReadAgainForAnotherStrategy) {
  WriteLine(true);
  const std::string data = "class_names: [low, high], validation: 0.1";
  const RunConfig open =
      Config("softmax_cross_entropy", 2, data, {"strategy.name=auto", "cluster.workers=2"});
  const RunConfig named =
      Config("softmax_cross_entropy", 2, data, {"strategy.name=single", "cluster.workers=2"});
  std::filesystem::remove(folder_ / "t.csv");
  std::filesystem::remove(folder_ / "model.yaml");
  const RunConfig settled = WithSchedule(open, "single");
  EXPECT_EQ(settled.effective_yaml, named.effective_yaml);
  EXPECT_EQ(settled.config_sha256, named.config_sha256);
  EXPECT_EQ(settled.data.source, open.data.source);
  EXPECT_EQ(settled.model.yaml, named.model.yaml);
}

TEST(DataSets, DeclareTheSameKeysWithoutTheirFiles) {
  const auto keys_by = [](const std::string& name, bool look) {
    config::Document document = config::Document::Empty();
    config::Reader root = document.root();
    const auto source = DatasetRegistry::Get("data set", name).make();
    if (look) {
      source->Configure(root);
    } else {
      source->ConfigureKeys(root);
    }
    std::vector<std::string> keys;
    for (const config::KeyHelp& key : document.Keys()) {
      keys.push_back(key.path + " " + key.type + " " + key.default_value);
    }
    return keys;
  };
  for (const std::string& name : DatasetRegistry::Names()) {
    EXPECT_EQ(keys_by(name, false), keys_by(name, true)) << name;
  }
}

}  // namespace
}  // namespace dtrain
