// Runs on the user's own tables: regression and classification, and what a checkpoint stores of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/core/file.h"
#include "framework/core/random.h"
#include "framework/data/images/image_set.h"
#include "framework/evaluate/evaluator.h"
#include "framework/evaluate/predictor.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/trained_data.h"
#include "framework/train/auto_strategy.h"
#include "tests/data/table_files.h"
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
                                    loss == "softmax_cross_entropy"
                                        ? "  - {name: accuracy, type: accuracy, input: "
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
  // Writes prices of some 400,000 by a formula.
  void WritePrices() const {
    std::string text = "a,b,price\n";
    const Random random(2, Purpose::kSelfTest);
    for (uint64_t i = 0; i < 200; ++i) {
      const double a = random.Uniform(2 * i) * 10, b = random.Uniform(2 * i + 1);
      text += fmt::format("{},{},{}\n", a, b, 300'000 + 20'000 * a - 5'000 * b);
    }
    Write("t.csv", text);
  }
  void ExpectPrices() const {
    Predictor predictor((folder_ / "run").string(), "cpu");
    EXPECT_NEAR(predictor.Predict(std::vector<float>{2, 0.5f})[0][0], 337'500, 300);
    EXPECT_NEAR(predictor.images().target_mean[0], 397'500, 20'000);
    EXPECT_GT(predictor.images().target_deviation[0], 10'000);
  }
  // Returns the loss of the run's weights on its test split, as `dtrain eval` computes it.
  double LossOf(const RunConfig& config) const {
    double loss = 0;
    LocalWorld::Run(1, [&](Transport& transport) {
      const std::unique_ptr<Dataset> data = LoadData(config);
      const Graph graph = ReadModel(config, data->fields());
      DecideTargets(graph, *data);
      const auto weights = FindWeights((folder_ / "run").string());
      const Checkpoint checkpoint = LoadWeights(weights, ModelLayoutOf(graph, *data));
      NormaliseAsTrained(checkpoint.info, weights.string(), *data);
      ExecutionPlan plan = DecidePlan(config, graph, 1, ThreadsHere(1));
      const std::unique_ptr<Net> net = MakeNet(graph, {}, plan);
      loss = JoinEvaluations(transport, *data,
                             EvaluateBlocks(*net, *data, Split::kTest, checkpoint.weights.data(),
                                            checkpoint.state.data(), 0, 1))
                 .loss;
    });
    return loss;
  }
};

// Labels from 1 on are a class more, and a number that only names its sample is a column more.
TEST_F(OwnTables, AModelThatDoesNotFitIsRefusedWithWhatWasRead) {
  const auto said = [&](const std::string& rows) {
    Write("t.csv", rows);
    testing::internal::CaptureStderr();
    EXPECT_THROW(ReadModel(Config("softmax_cross_entropy", 2, "mean: []", {"batch=2"})),
                 ConfigError);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said("5,2,1\n3,5,2\n4,7,1\n8,3,2\n"),
              testing::HasSubstr("the labels begin at 1, and classes are counted from 0"));
  EXPECT_THAT(said(",a,b,y\n7,5,2,1\n2,3,5,0\n9,4,7,1\n5,2,8,0\n"),
              testing::HasSubstr("3 columns (, a, b)"));
}

// The labels of the one table are those of the other in another order.
TEST_F(OwnTables, ARegressionThatLearnsNothingSaysSo) {
  const auto said = [&](bool shuffled, Summary& summary) {
    std::string text = "a,b,y\n";
    const Random random(3, Purpose::kSelfTest);
    for (uint64_t i = 0; i < 400; ++i) {
      const double a = random.Uniform(2 * i), b = random.Uniform(2 * i + 1);
      const uint64_t j = shuffled ? (i * 147 + 5) % 400 : i;
      text += fmt::format("{},{},{}\n", a, b,
                          1000 + 50 * random.Uniform(2 * j) - 20 * random.Uniform(2 * j + 1));
    }
    Write("t.csv", text);
    testing::internal::CaptureStderr();
    summary = Run(Config("mean_squared_error", 1, "task: regression", {"epochs=5"})).summary;
    std::filesystem::remove_all(folder_ / "run");
    return testing::internal::GetCapturedStderr();
  };
  Summary summary;
  EXPECT_THAT(said(false, summary), testing::Not(testing::HasSubstr("guessing")));
  ASSERT_TRUE(summary.test->guess_loss.has_value());
  EXPECT_FALSE(summary.test->guessing);
  // The variance of 50 u - 20 v, of which 40 test samples differ a little.
  EXPECT_NEAR(*summary.test->guess_loss, (2500 + 400) / 12.0, 80);
  EXPECT_THAT(said(true, summary),
              testing::HasSubstr("that of guessing: the mean of the training"));
  EXPECT_TRUE(summary.test->guessing);
}

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

// Targets are normalised for the net, and turned back in what the run, an evaluation and the predictor say.
TEST_F(OwnTables, LargeTargetsAreLearnedAndAnsweredInTheirUnit) {
  WritePrices();
  for (const char* workers : {"1", "2"}) {
    const RunConfig config = Config("mean_squared_error", 1, "task: regression",
                                    {std::string("cluster.workers=") + workers, "epochs=30"});
    const TrainResult result = Run(config);
    ASSERT_TRUE(result.summary.test.has_value());
    EXPECT_LT(result.summary.test->loss, 100.0 * 100.0) << "the squared unit of the prices";
    EXPECT_GT(result.summary.test->loss, 0);
    EXPECT_NEAR(LossOf(config), result.summary.test->loss, 1e-6 * result.summary.test->loss);
    ExpectPrices();
    std::filesystem::remove_all(folder_ / "run");
  }
}

// Mean and deviation are those of all samples.
TEST_F(OwnTables, LargeTargetsOfTheFirstSamplesAreLearned) {
  WritePrices();
  Run(Config("mean_squared_error", 1, "task: regression", {"data.limit=100", "epochs=60"}));
  ExpectPrices();
}

TEST_F(OwnTables, EachOfSeveralTargetsIsAnsweredInItsUnit) {
  std::vector<float> samples;
  std::vector<double> targets;
  const Random random(2, Purpose::kSelfTest);
  for (uint64_t i = 0; i < 200; ++i) {
    const float a = random.Uniform(2 * i) * 10, b = random.Uniform(2 * i + 1);
    samples.insert(samples.end(), {a, b});
    targets.insert(targets.end(), {300'000 + 20'000 * a, -2 + 0.01 * b});
  }
  Write("x.npy", NpyOf<float>("<f4", "200, 2", samples));
  Write("y.npy", NpyOf<double>("<f8", "200, 2", targets));
  const TrainResult result =
      Run(Config("mean_squared_error", 2, "task: regression",
                 {"data.name=npy", "data.train=" + (folder_ / "x.npy").string(),
                  "data.train_labels=" + (folder_ / "y.npy").string(), "epochs=60"}));
  ASSERT_TRUE(result.summary.test.has_value());
  EXPECT_LT(result.summary.test->loss, 1e-4) << "of normalised targets: they share no unit";
  Predictor predictor((folder_ / "run").string(), "cpu");
  const std::vector<double> answer = predictor.Predict(std::vector<float>{2, 0.5f})[0];
  EXPECT_NEAR(answer.at(0), 340'000, 300);
  EXPECT_NEAR(answer.at(1), -1.995, 1e-4);
}

// A row of the houses of configs/README.md: area, rooms, year and price.
using House = std::array<double, 4>;

std::vector<House> Houses(int count) {
  const Random random(7, Purpose::kSelfTest), noise(8, Purpose::kSelfTest);
  std::vector<House> houses;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<uint64_t>(4 * i);
    const double area = std::round(500 + 2000.0 * random.Uniform(at)) / 10;
    const auto rooms = static_cast<double>(1 + random.Below(at + 1, 6));
    const auto year = static_cast<double>(1950 + random.Below(at + 2, 70));
    const double price = 3000 * area + 5000 * rooms + 500 * (year - 1950) +
                         5000 * noise.Normal(static_cast<uint64_t>(i));
    houses.push_back({area, rooms, year, std::round(price)});
  }
  return houses;
}

std::string CsvOf(std::span<const House> houses) {
  std::string text = "area,rooms,year,price\n";
  for (const auto& [area, rooms, year, price] : houses) {
    text += fmt::format("{},{},{},{}\n", area, rooms, year, price);
  }
  return text;
}

// Returns the columns of a house, the year from 1950 on, and a 1 for the constant.
std::array<double, 4> TermsOf(const House& house) {
  return {house[0], house[1], house[2] - 1950, 1};
}

// Returns the factors of the terms with the least squared error, by the normal equations.
std::array<double, 4> LeastSquares(std::span<const House> houses) {
  double equations[4][5] = {};
  for (const House& house : houses) {
    const auto terms = TermsOf(house);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) equations[i][j] += terms[i] * terms[j];
      equations[i][4] += terms[i] * house[3];
    }
  }
  for (int pivot = 0; pivot < 4; ++pivot) {  // Gauss-Jordan; the matrix is positive definite
    for (int i = 0; i < 4; ++i) {
      const double factor = equations[i][pivot] / equations[pivot][pivot];
      for (int j = pivot; j < 5 && i != pivot; ++j) equations[i][j] -= factor * equations[pivot][j];
    }
  }
  std::array<double, 4> factors;
  for (int i = 0; i < 4; ++i) factors[i] = equations[i][4] / equations[i][i];
  return factors;
}

// Returns a config that configs/README.md shows, which begins with this line.
std::string Documented(const std::string& first_line) {
  const std::string text = ReadFile(DTRAIN_SOURCE_DIR "/configs/README.md");
  const size_t begin = text.find("```yaml\n" + first_line);
  if (begin == std::string::npos) return "";
  return text.substr(begin + 8, text.find("\n```", begin) - begin - 7);
}

TEST_F(OwnTables, TheDocumentedRecipeOfHousesIsNearlyAsGoodAsLeastSquares) {
  const std::vector<House> houses = Houses(2000);
  const auto train = std::span(houses).first(1800), test = std::span(houses).last(200);
  Write("train.csv", CsvOf(train));
  Write("test.csv", CsvOf(test));
  Write("net.yaml", Documented("# net.yaml"));
  config::Document document = config::Document::FromText(
      Documented("# houses.yaml"), "houses.yaml",
      {"model.name=" + (folder_ / "net.yaml").string(),
       "data.train=" + (folder_ / "train.csv").string(),
       "data.test=" + (folder_ / "test.csv").string(), "output=" + (folder_ / "run").string()});
  Run(ReadRunConfig(document));
  std::vector<double> samples;
  for (const House& house : test) samples.insert(samples.end(), house.begin(), house.end() - 1);
  const auto answers = Predictor((folder_ / "run").string(), "cpu").Predict(Numbers(samples));
  const std::array<double, 4> factors = LeastSquares(train);
  double error = 0, least = 0;
  for (size_t i = 0; i < test.size(); ++i) {
    const auto terms = TermsOf(test[i]);
    double fitted = 0;
    for (int k = 0; k < 4; ++k) fitted += factors[k] * terms[k];
    error += std::abs(answers.at(i).at(0) - test[i][3]);
    least += std::abs(fitted - test[i][3]);
  }
  EXPECT_NEAR(least / 200, 5000 * std::sqrt(2 / 3.14159), 600) << "the noise of the prices";
  EXPECT_LE(error, 1.25 * least);
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
