#include "framework/data/batches.h"

#include <gmock/gmock.h>

#include "framework/core/error.h"
#include "framework/data/images/image_set.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

// Returns 50 training samples of one pixel; pixel and label are the sample's index.
ImageSet Numbered() {
  LabelledImages train, test;
  for (int i = 0; i < 50; ++i) {
    train.images.push_back(static_cast<uint8_t>(i));
    train.labels.push_back(static_cast<uint8_t>(i));
  }
  test.images = {7, 8, 9, 10, 11};
  test.labels = {0, 1, 2, 3, 4};
  return ImageSet({Shape{1, 1, 1}, 50, 0, 1}, train, test);
}

// Returns the samples of each step: all workers' shares one after the other.
std::vector<std::vector<int>> StepsSeen(const ImageSet& set, int workers) {
  const Sampler sampler(3, 50, 16);
  std::vector<std::vector<int>> seen(8);
  for (int w = 0; w < workers; ++w) {
    BatchFiller fill = TrainingBatches(set, sampler, w, workers, 0, 8);
    Batch batch(set.fields(), sampler.MaxShare(workers));
    for (uint64_t k = 0; fill(k, batch); ++k) {
      EXPECT_EQ(batch.first_position, static_cast<int64_t>(seen[k].size()));
      EXPECT_EQ(batch.global_samples, k % 4 == 3 ? 2 : 16);
      for (int64_t i = 0; i < batch.samples; ++i) seen[k].push_back(batch.fields[1].i32()[i]);
    }
  }
  return seen;
}

TEST(Batches, StepsDoNotDependOnTheNumberOfWorkers) {
  const ImageSet set = Numbered();
  const auto alone = StepsSeen(set, 1);
  EXPECT_EQ(alone[3].size(), 2u);
  EXPECT_NE(alone[0], alone[4]);
  for (const int workers : {2, 3, 5}) EXPECT_EQ(StepsSeen(set, workers), alone);
}

TEST(Batches, StartInTheMiddle) {
  const ImageSet set = Numbered();
  const auto whole = StepsSeen(set, 1);
  BatchFiller fill = TrainingBatches(set, Sampler(3, 50, 16), 0, 1, 5, 7);
  Batch batch(set.fields(), 16);
  ASSERT_TRUE(fill(0, batch));
  EXPECT_EQ(batch.step, 5u);
  EXPECT_EQ(batch.epoch, 1u);
  EXPECT_EQ(batch.fields[1].i32()[0], whole[5][0]);
  ASSERT_TRUE(fill(1, batch));
  EXPECT_FALSE(fill(2, batch));
}

TEST(Batches, EvaluationKeepsIndexOrder) {
  const ImageSet set = Numbered();
  BatchFiller fill = EvaluationBatches(set, Split::kTest, EvaluationBlocks(5, 3));
  Batch batch(set.fields(), 3);
  ASSERT_TRUE(fill(0, batch));
  EXPECT_EQ(batch.samples, 3);
  ASSERT_TRUE(fill(1, batch));
  EXPECT_EQ(batch.samples, 2);
  EXPECT_EQ(batch.first_position, 3);
  EXPECT_EQ(batch.global_samples, 2);
  EXPECT_EQ(batch.step, 1U);
  EXPECT_EQ(batch.epoch, 0U);
  EXPECT_EQ(batch.fields[1].i32()[0], 3);
  EXPECT_FALSE(fill(2, batch));
}

TEST(Batches, EvaluationTakesTheOrderThatItIsGiven) {
  const ImageSet set = Numbered();
  BatchFiller fill = EvaluationBatches(set, Split::kTrain, {{1, 3}, {3, 4}}, {9, 7, 40, 0, 5});
  Batch batch(set.fields(), 2);
  const auto filled = [&](uint64_t k) {
    EXPECT_TRUE(fill(k, batch));
    return std::vector<int32_t>(batch.fields[1].i32(), batch.fields[1].i32() + batch.samples);
  };
  EXPECT_EQ(filled(0), (std::vector<int32_t>{7, 40}));
  EXPECT_EQ(filled(1), (std::vector<int32_t>{0}));
  EXPECT_FALSE(fill(2, batch));
}

TEST(LocateData, RootIsTheOnlyPlace) {
  const TempFolder folder;
  folder.Write("mnist/x", "");
  EXPECT_EQ(LocateData("mnist", folder.path().string()), folder / "mnist");
  EXPECT_THAT(
      MessageOf<DataError>([&] { LocateData("other", folder.path().string()); }),
      testing::AllOf(testing::HasSubstr("data set 'other' is not here; looked at:\n  no folder " +
                                        (folder / "other").string()),
                     testing::HasSubstr("dtrain data fetch other")));
}

TEST(LocateData, PlacesInOrder) {
  const TempFolder data, cache, home;
  const ScopedVariable a("DTRAIN_DATA", data.path().c_str());
  const ScopedVariable b("XDG_CACHE_HOME", cache.path().c_str());
  const ScopedVariable c("HOME", home.path().c_str());
  EXPECT_THAT(MessageOf<DataError>([&] { LocateData("s", ""); }),
              testing::HasSubstr("looked at:\n  no folder " + (data / "s").string() +
                                 "\n  no folder " + (cache / "dtrain/s").string() +
                                 "\n  no folder " + (home / ".cache/dtrain/s").string()));
  home.Write(".cache/dtrain/s/x", "");
  EXPECT_EQ(LocateData("s", ""), home / ".cache/dtrain/s");
  cache.Write("dtrain/s/x", "");
  EXPECT_EQ(LocateData("s", ""), cache / "dtrain/s");
  data.Write("s/x", "");
  EXPECT_EQ(LocateData("s", ""), data / "s");
}

TEST(LocateData, NowhereToLook) {
  const ScopedVariable a("DTRAIN_DATA", nullptr), b("XDG_CACHE_HOME", ""), c("HOME", nullptr);
  EXPECT_THAT(MessageOf<DataError>([] { LocateData("s", ""); }),
              testing::HasSubstr("looked at nothing: DTRAIN_DATA and HOME are not set"));
  EXPECT_THAT(MessageOf<DataError>([] { FetchFolder("s", ""); }),
              testing::HasSubstr("no folder to put data set 's' into: HOME is not set"));
}

}  // namespace
}  // namespace dtrain
