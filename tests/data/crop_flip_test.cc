#include "framework/data/images/image_set.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "framework/core/random.h"
#include "framework/data/batches.h"

namespace dtrain {
namespace {

constexpr CropFlip kUsual = {4, true};

// Computes the view slowly: pads the whole image, cuts it and mirrors it.
std::vector<float> Reference(const View& view, const std::vector<uint8_t>& image, int rows,
                             int columns, int padding, std::span<const float, 256> values) {
  const int wide = columns + 2 * padding;
  std::vector<float> padded((rows + 2 * padding) * wide, values[0]);
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      padded[(y + padding) * wide + x + padding] = values[image[y * columns + x]];
    }
  }
  std::vector<float> cut;
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const int seen = view.mirrored ? columns - 1 - x : x;
      cut.push_back(padded[(y + padding + view.down) * wide + seen + padding + view.right]);
    }
  }
  return cut;
}

std::array<float, 256> SomeValues() {
  std::array<float, 256> values;
  for (int p = 0; p < 256; ++p) values[p] = static_cast<float>(p) * 0.5f - 3;
  return values;
}

std::vector<uint8_t> SomeImage(int pixels) {
  std::vector<uint8_t> image;
  for (int i = 0; i < pixels; ++i) image.push_back(static_cast<uint8_t>(i * 37 + 1));
  return image;
}

TEST(CropFlip, EveryViewIsTheReference) {
  constexpr int kPadding = 7;  // wider than two of the images
  const std::array<float, 256> values = SomeValues();
  for (const auto& [rows, columns] : {std::pair{9, 6}, std::pair{1, 1}, std::pair{3, 8}}) {
    const std::vector<uint8_t> image = SomeImage(rows * columns);
    for (int64_t down = -kPadding; down <= kPadding; ++down) {
      for (int64_t right = -kPadding; right <= kPadding; ++right) {
        for (const bool mirrored : {false, true}) {
          const View view{down, right, mirrored};
          std::vector<float> seen(rows * columns + 2, 99);
          CopyView(view, image.data(), rows, columns, values, seen.data() + 1);
          EXPECT_EQ(seen.front(), 99);  // nothing outside is written
          EXPECT_EQ(seen.back(), 99);
          EXPECT_EQ(std::vector<float>(seen.begin() + 1, seen.end() - 1),
                    Reference(view, image, rows, columns, kPadding, values))
              << down << " " << right << " " << mirrored;
        }
      }
    }
  }
}

TEST(CropFlip, ViewsAreAFunctionOfSeedEpochAndSample) {
  int same = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    const View view = DrawView(kUsual, 1, 2, sample);
    EXPECT_EQ(view, DrawView(kUsual, 1, 2, sample));
    same += view == DrawView(kUsual, 2, 2, sample);
    same += view == DrawView(kUsual, 1, 3, sample);
    same += view == DrawView(kUsual, 1, 2, sample + 1);
  }
  EXPECT_LT(same, 60);  // 162 views are equally likely: 19 of 3000 agree by chance
}

TEST(CropFlip, ViewsAreUniform) {
  // Over two epochs of 50,000 images each of the 162 views is drawn 617 +- 25 times.  A chi-squared
  // with 161 degrees of freedom exceeds 223 once in a thousand.
  std::map<std::array<int64_t, 3>, int> counts;
  int mirrored = 0;
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t sample = 0; sample < 50000; ++sample) {
      const View view = DrawView(kUsual, 1, epoch, sample);
      ASSERT_LE(std::abs(view.down), 4);
      ASSERT_LE(std::abs(view.right), 4);
      ++counts[{view.down, view.right, view.mirrored}];
      mirrored += view.mirrored;
    }
  }
  EXPECT_NEAR(mirrored / 1e5, 0.5, 0.005);
  ASSERT_EQ(counts.size(), 162u);
  double chi_squared = 0;
  for (const auto& [view, count] : counts) {
    chi_squared += (count - 1e5 / 162) * (count - 1e5 / 162) / (1e5 / 162);
  }
  EXPECT_LT(chi_squared, 223);
}

// Words 0, 1 and 2 of the sample's random numbers give the offsets down and right in [-4, 4]; the
// top bit decides the mirroring.
TEST(CropFlip, ViewsFollowFromTheCountedNumbers) {
  for (uint64_t sample = 0; sample < 100; ++sample) {
    const auto words = Random(1, Purpose::kAugment, 2, sample).Block(0);
    const auto offset = [](uint32_t word) { return static_cast<int64_t>(word * 9.0 / 0x1p32) - 4; };
    EXPECT_EQ(DrawView(kUsual, 1, 2, static_cast<int64_t>(sample)),
              (View{offset(words[0]), offset(words[1]), words[2] >= 0x80000000u}));
  }
}

TEST(CropFlip, NothingAskedIsTheImageItself) {
  for (int64_t sample = 0; sample < 100; ++sample) {
    EXPECT_EQ(DrawView({}, 1, 2, sample), View{});
    EXPECT_FALSE(DrawView({4, false}, 1, 2, sample).mirrored);
    EXPECT_EQ(DrawView({0, true}, 1, 2, sample).right, 0);
  }
}

// Makes 60 + 20 different images of 2 x 6 x 6 with a normalisation for each channel.
ImageSet Set(const CropFlip& augment, uint64_t seed) {
  LabelledImages train, test;
  train.images = SomeImage(60 * 72);
  test.images = SomeImage(20 * 72);
  for (int i = 0; i < 60; ++i) train.labels.push_back(static_cast<uint8_t>(i));
  for (int i = 0; i < 20; ++i) test.labels.push_back(static_cast<uint8_t>(i));
  return ImageSet({Shape{2, 6, 6}, 60, {0.25f, 0.5f}, {0.5f, 0.125f}}, train, test, augment, seed);
}

std::vector<float> Sample(const ImageSet& set, Split split, int64_t index, uint64_t epoch) {
  Batch batch(set.fields(), 1);
  set.Fill(split, std::vector<int64_t>{index}, epoch, batch);
  EXPECT_EQ(batch.fields[1].i32()[0], index);
  return {batch.fields[0].f32(), batch.fields[0].f32() + 72};
}

TEST(ImageSet, NormalisesEachChannelWithItsOwnNumbers) {
  const std::vector<float> seen = Sample(Set({}, 1), Split::kTrain, 3, 0);
  const std::vector<uint8_t> bytes = SomeImage(60 * 72);
  for (int i = 0; i < 72; ++i) {
    const float grey = static_cast<float>(bytes[3 * 72 + i]) / 255.0f;
    EXPECT_EQ(seen[i], i < 36 ? (grey - 0.25f) / 0.5f : (grey - 0.5f) / 0.125f) << i;
  }
}

TEST(ImageSet, RowsAndColumnsMayDiffer) {
  LabelledImages images;
  images.images = SomeImage(2 * 24);
  images.labels = {0, 1};
  const std::vector<uint8_t> bytes = images.images;
  const ImageSet set({Shape{2, 3, 4}, 2, {0, 0.5f}, {1, 1}}, images, images, kUsual, 1);
  for (int64_t index = 0; index < 2; ++index) {
    Batch batch(set.fields(), 1);
    set.Fill(Split::kTest, std::vector<int64_t>{index}, 0, batch);
    for (int i = 0; i < 24; ++i) {
      const float mean = i < 12 ? 0 : 0.5f;
      EXPECT_EQ(batch.fields[0].f32()[i],
                static_cast<float>(bytes[index * 24 + i]) / 255.0f - mean);
    }
  }
}

TEST(ImageSet, ChannelsAreSeenTogetherAndPaddedBlack) {
  const ImageSet set = Set(kUsual, 5);
  const std::vector<uint8_t> bytes = SomeImage(60 * 72);
  for (int64_t index = 0; index < 60; ++index) {
    const std::vector<float> seen = Sample(set, Split::kTrain, index, 9);
    const View view = DrawView(kUsual, 5, 9, index);
    for (int c = 0; c < 2; ++c) {
      std::array<float, 256> values;
      for (int p = 0; p < 256; ++p) {
        const float grey = static_cast<float>(p) / 255.0f;
        values[p] = c == 0 ? (grey - 0.25f) / 0.5f : (grey - 0.5f) / 0.125f;
      }
      const auto begin = bytes.begin() + index * 72 + c * 36;
      const std::vector<float> channel(seen.begin() + c * 36, seen.begin() + c * 36 + 36);
      EXPECT_EQ(channel, Reference(view, {begin, begin + 36}, 6, 6, 4, values));
    }
  }
}

TEST(ImageSet, OnlyTrainingEpochsAreAugmented) {
  const ImageSet plain = Set({}, 1), augmented = Set(kUsual, 1);
  int changed = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const std::vector<float> train = Sample(plain, Split::kTrain, i, 0);
    const std::vector<float> test = Sample(plain, Split::kTest, i, 0);
    EXPECT_EQ(Sample(augmented, Split::kTrain, i, kNoEpoch), train);
    EXPECT_EQ(Sample(augmented, Split::kTest, i, 0), test);
    EXPECT_EQ(Sample(augmented, Split::kTest, i, 3), test);
    changed += Sample(augmented, Split::kTrain, i, 0) != train;
  }
  EXPECT_GT(changed, 15);
}

TEST(ImageSet, EvaluationOnTrainingImagesIsNotAugmented) {
  const ImageSet set = Set(kUsual, 1);
  BatchFiller fill = EvaluationBatches(set, Split::kTrain, {{0, 60}});
  Batch batch(set.fields(), 60);
  ASSERT_TRUE(fill(0, batch));
  for (int64_t i = 0; i < 60; ++i) {
    const float* row = batch.fields[0].f32() + i * 72;
    EXPECT_EQ(std::vector<float>(row, row + 72), Sample(set, Split::kTrain, i, kNoEpoch));
  }
}

// Returns all rows of each step: all workers' shares one after the other.
std::vector<std::vector<float>> StepsSeen(uint64_t seed, int workers) {
  const ImageSet set = Set(kUsual, seed);
  const Sampler sampler(3, 60, 16);
  std::vector<std::vector<float>> seen(8);
  for (int w = 0; w < workers; ++w) {
    BatchFiller fill = TrainingBatches(set, sampler, w, workers, 0, 8);
    Batch batch(set.fields(), sampler.MaxShare(workers));
    for (uint64_t k = 0; fill(k, batch); ++k) {
      const float* rows = batch.fields[0].f32();
      seen[k].insert(seen[k].end(), rows, rows + batch.samples * 72);
    }
  }
  return seen;
}

TEST(ImageSet, AugmentedStepsDoNotDependOnTheNumberOfWorkers) {
  const auto alone = StepsSeen(1, 1);
  EXPECT_EQ(alone[0].size(), 16u * 72);
  for (const int workers : {2, 3, 5, 16}) EXPECT_EQ(StepsSeen(1, workers), alone);
  EXPECT_NE(StepsSeen(2, 1), alone);
}

}  // namespace
}  // namespace dtrain
