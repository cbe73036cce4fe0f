// Tests Predictor: classes of images from a checkpoint alone.
#include "framework/evaluate/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/data/images/image_set.h"
#include "framework/setup/run_setup.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

class PredictorTest : public RunFixture {
 protected:
  // Trains a net with this loss; it has every other kind of layer with one input.
  TrainResult RunWithLoss(const std::string& loss) {
    const auto model = folder_ / "model.yaml";
    std::ofstream(model) << "name: small\n"
                            "layers:\n"
                            "  - {name: conv1, type: convolution, outputs: 6, kernel: 5, pad: 2}\n"
                            "  - {name: norm1, type: group_norm, groups: 2}\n"
                            "  - {name: silu1, type: silu}\n"
                            "  - {name: pool1, type: pooling}\n"
                            "  - {name: lrn1, type: lrn, alpha: 0.01}\n"
                            "  - {name: leaky1, type: leaky_relu}\n"
                            "  - {name: fc1, type: inner_product, outputs: 64}\n"
                            "  - {name: norm2, type: layer_norm}\n"
                            "  - {name: gelu1, type: gelu}\n"
                            "  - {name: fc2, type: inner_product, outputs: 32}\n"
                            "  - {name: sigmoid1, type: sigmoid}\n"
                            "  - {name: fc3, type: inner_product, outputs: 10}\n"
                            "  - {name: loss, type: "
                         << loss
                         << ", input: [fc3, label]}\n"
                            "  - {name: accuracy, type: accuracy, input: [fc3, label]}\n";
    return Run(OnDigits("run",
                        {"model.name=" + model.string(), "epochs=20", "threads=1",
                         "solver={name: rmsprop, lr: 0.003}"},
                        {}));
  }
};

// It is correct as often as the run's own evaluation counted, from any file with the weights.
TEST_F(PredictorTest, IsRightAsOftenAsTheRunSays) {
  const RunConfig config = OnDigits("run", {"epochs=3", "threads=1", "solver.lr=0.05"}, {});
  const TrainResult result = Run(config);
  const std::string run = (folder_ / "run").string();
  const std::string exported = (folder_ / "weights.safetensors").string();
  WriteStoredWeights(exported, WeightsFormat::kSafetensors, ReadStoredWeights(FindWeights(run)));
  const auto data = LoadData(config);
  const LabelledImages& test = static_cast<const ImageSet&>(*data).images(Split::kTest);
  for (const std::string& weights : {run, exported}) {
    Predictor predictor(weights, "cpu");
    EXPECT_EQ(predictor.model(), "lenet5");
    EXPECT_EQ(predictor.images().classes, 10);
    EXPECT_EQ(predictor.ClassName(3), "3");
    const auto answers = predictor.Predict(test.images);
    ASSERT_EQ(answers.size(), test.labels.size());
    int64_t right = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      double sum = 0;
      for (const double probability : answers[i]) sum += probability;
      EXPECT_NEAR(sum, 1, 1e-9);
      right += std::ranges::max_element(answers[i]) - answers[i].begin() == test.labels[i] ? 1 : 0;
    }
    EXPECT_EQ(static_cast<double>(right) / static_cast<double>(answers.size()),
              *result.summary.test->accuracy);
    // One image at a time gives the same answers as all at once.
    const auto pixels = test.images.size() / test.labels.size();
    const auto one = predictor.Predict(
        std::vector<uint8_t>(test.images.begin() + static_cast<long>(70 * pixels),
                             test.images.begin() + static_cast<long>(71 * pixels)));
    EXPECT_EQ(one.at(0), answers[70]);
  }
}

// Each class has its own probability; the most probable one is correct as often as the run counted.
TEST_F(PredictorTest, AQuestionAClassIsAnsweredByItself) {
  const TrainResult result = RunWithLoss("binary_cross_entropy");
  EXPECT_GT(*result.summary.test->accuracy, 0.5);
  Predictor predictor((folder_ / "run").string(), "cpu");
  const auto data = LoadData(OnDigits("run", {}, {}));
  const LabelledImages& test = static_cast<const ImageSet&>(*data).images(Split::kTest);
  int64_t right = 0;
  double farthest = 0;  // largest distance of a sample's sum from 1
  const auto answers = predictor.Predict(test.images);
  for (size_t i = 0; i < answers.size(); ++i) {
    for (const double probability : answers[i]) {
      EXPECT_TRUE(probability >= 0 && probability <= 1) << probability;
    }
    const double sum = std::accumulate(answers[i].begin(), answers[i].end(), 0.0);
    farthest = std::max(farthest, std::abs(sum - 1));
    right += std::ranges::max_element(answers[i]) - answers[i].begin() == test.labels[i] ? 1 : 0;
  }
  EXPECT_GT(farthest, 0.01) << "nothing holds them together";
  EXPECT_EQ(static_cast<double>(right) / static_cast<double>(answers.size()),
            *result.summary.test->accuracy);
}

TEST_F(PredictorTest, AModelOfNumbersTellsNoClasses) {
  EXPECT_GT(*RunWithLoss("mean_squared_error").summary.test->accuracy, 0.5);
  EXPECT_THAT(MessageOf([&] { Predictor((folder_ / "run").string(), "cpu"); }),
              HasSubstr("model 'small' predicts numbers, not classes: its loss 'loss' is the mean "
                        "squared error"));
}

TEST_F(PredictorTest, WeightsThatKnowNoImagesAreRefused) {
  Run(OnDigits("run", {"max_steps=1", "threads=1"}, {}));
  StoredWeights stored = ReadStoredWeights(FindWeights(folder_ / "run"));
  stored.info.images.clear();
  const auto path = folder_ / "bare.safetensors";
  WriteStoredWeights(path, WeightsFormat::kSafetensors, stored);
  EXPECT_THAT(MessageOf([&] { Predictor(path.string(), "cpu"); }),
              HasSubstr("does not contain its model and the format of its images"));
}

}  // namespace
}  // namespace dtrain
