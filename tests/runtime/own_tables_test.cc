// Runs on tables of one's own: numbers to come near to, and classes; what a checkpoint knows of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "framework/core/random.h"
#include "framework/data/images/image_set.h"
#include "framework/runtime/judge/predictor.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "framework/runtime/weights/weights_file.h"
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
  // y = 3 a - 2 b + 1, or whether that is above 1.
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

TEST_F(OwnTables, NothingTellsWhichWeightsAreBestWithoutAnAccuracy) {
  WriteLine(false);
  const RunConfig config =
      Config("mean_squared_error", 1, "validation: 0.1", {"checkpoint.keep_best=true", "epochs=1"});
  EXPECT_THAT(MessageOf([&] { Run(config); }),
              ::testing::HasSubstr("checkpoint.keep_best has nothing to go by"));
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

}  // namespace
}  // namespace dtrain
