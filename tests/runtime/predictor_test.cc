// Predictor: classes of images by a checkpoint alone.
#include "framework/runtime/judge/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/data/images/image_set.h"
#include "framework/runtime/setup/run_setup.h"
#include "framework/runtime/weights/checkpoint_folder.h"
#include "framework/runtime/weights/weights_file.h"
#include "tests/runtime/run_fixture.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

class PredictorTest : public RunFixture {};

// As many right as the run's own evaluation counted, whatever file the weights come from.
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
    // One by one they are what they are together.
    const auto pixels = test.images.size() / test.labels.size();
    const auto one = predictor.Predict({test.images.begin() + static_cast<long>(70 * pixels),
                                        test.images.begin() + static_cast<long>(71 * pixels)});
    EXPECT_EQ(one.at(0), answers[70]);
  }
}

TEST_F(PredictorTest, WeightsThatKnowNoImagesAreRefused) {
  Run(OnDigits("run", {"max_steps=1", "threads=1"}, {}));
  StoredWeights stored = ReadStoredWeights(FindWeights(folder_ / "run"));
  stored.info.images.clear();
  const auto path = folder_ / "bare.safetensors";
  WriteStoredWeights(path, WeightsFormat::kSafetensors, stored);
  EXPECT_THAT(MessageOf([&] { Predictor(path.string(), "cpu"); }),
              HasSubstr("does not say of which images its model is"));
}

}  // namespace
}  // namespace dtrain
