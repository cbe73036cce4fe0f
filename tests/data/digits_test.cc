// Tests the procedural set, and the properties that every registered data set has.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "datasets/digits/render.h"
#include "framework/core/sha256.h"
#include "framework/data/dataset.h"

namespace dtrain {
namespace {

using Image = std::vector<uint8_t>;

Image Drawn(uint64_t seed, Split split, int64_t index, int* digit = nullptr) {
  Image image(digits::kPixels);
  const int drawn = digits::Draw(seed, split, index, image.data());
  if (digit != nullptr) *digit = drawn;
  return image;
}

std::unique_ptr<Dataset> Load(const std::string& config) {
  config::Document document = config::Document::FromText(config, "test.yaml");
  const auto source = DatasetRegistry::Get("data set", "digits").make();
  config::Reader reader = document.root();
  source->Configure(reader);
  document.Finish();
  return source->Load("", 99);
}

TEST(Digits, ASampleIsAFunctionOfSeedSplitAndIndex) {
  const Image one = Drawn(1, Split::kTrain, 5);
  EXPECT_EQ(one, Drawn(1, Split::kTrain, 5));
  EXPECT_NE(one, Drawn(2, Split::kTrain, 5));
  EXPECT_NE(one, Drawn(1, Split::kTest, 5));
  EXPECT_NE(one, Drawn(1, Split::kTrain, 6));
}

// A changed hash means a changed data set: accuracies from before the change are not comparable.
TEST(Digits, TheSetIsTheSameOnEveryMachine) {
  Sha256 hash;
  for (int64_t i = 0; i < 200; ++i) {
    int digit = 0;
    const Image image = Drawn(1, Split::kTrain, i, &digit);
    hash.Update(image.data(), image.size());
    hash.Update(&digit, 1);
  }
  EXPECT_EQ(hash.HexDigest(), "580af366d2fd359e05c4e89f5b44b361a0a278c9f325985b9cedbcfcfe568816");
}

TEST(Digits, ClassesAreEven) {
  std::vector<int> counts(10);
  for (int64_t i = 0; i < 5000; ++i) {
    int digit = -1;
    Drawn(1, Split::kTrain, i, &digit);
    ASSERT_GE(digit, 0);
    ASSERT_LE(digit, 9);
    ++counts[digit];
  }
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 400);
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 600);
}

TEST(Digits, InkStaysOnThePaper) {
  // The mean image has an almost empty border and ink in the middle.
  std::vector<double> mean(digits::kPixels);
  for (int64_t i = 0; i < 2000; ++i) {
    const Image image = Drawn(1, Split::kTrain, i);
    for (int p = 0; p < digits::kPixels; ++p) mean[p] += image[p] / 255.0 / 2000;
  }
  const double noise = 0.05;
  for (int i = 0; i < digits::kSide; ++i) {
    EXPECT_LT(mean[i], noise);
    EXPECT_LT(mean[27 * 28 + i], noise);
    EXPECT_LT(mean[i * 28], noise);
    EXPECT_LT(mean[i * 28 + 27], noise);
  }
  EXPECT_GT(mean[14 * 28 + 14], 0.3);
}

TEST(Digits, EveryGlyphIsDrawnWhole) {
  for (int64_t i = 0; i < 2000; ++i) {
    const Image image = Drawn(1, Split::kTest, i);
    const auto dark = std::count_if(image.begin(), image.end(), [](uint8_t p) { return p > 128; });
    EXPECT_GT(dark, 15) << "sample " << i;
    EXPECT_LT(dark, 350) << "sample " << i;
  }
}

TEST(Digits, ConfigSetsSizesAndSeed) {
  const auto set = Load("{train_samples: 30, test_samples: 20, seed: 4}");
  EXPECT_EQ(set->size(Split::kTrain), 30);
  EXPECT_EQ(set->size(Split::kTest), 20);
  Batch batch(set->fields(), 1);
  int digit = 0;
  const Image image = Drawn(4, Split::kTrain, 7, &digit);
  set->Fill(Split::kTrain, std::vector<int64_t>{7}, 3, batch);
  EXPECT_EQ(batch.fields[1].i32()[0], digit);
  EXPECT_FLOAT_EQ(batch.fields[0].f32()[300], (image[300] / 255.0f - 0.1329f) / 0.2632f);
}

TEST(Digits, MoreSamplesDoNotChangeTheFirst) {
  const auto few = Load("{train_samples: 30, test_samples: 20}");
  const auto more = Load("{train_samples: 60, test_samples: 20}");
  Batch a(few->fields(), 1), b(more->fields(), 1);
  few->Fill(Split::kTrain, std::vector<int64_t>{29}, 0, a);
  more->Fill(Split::kTrain, std::vector<int64_t>{29}, 0, b);
  EXPECT_TRUE(std::equal(a.fields[0].f32(), a.fields[0].f32() + 784, b.fields[0].f32()));
  EXPECT_NE(few->ManifestHash(), more->ManifestHash());
}

TEST(Digits, IsNormalised) {
  const auto set = Load("{}");
  ASSERT_EQ(set->size(Split::kTrain), 12000);
  ASSERT_EQ(set->size(Split::kTest), 2000);
  std::vector<int64_t> all(12000);
  std::iota(all.begin(), all.end(), 0);
  Batch batch(set->fields(), 12000);
  set->Fill(Split::kTrain, all, 0, batch);
  const int64_t count = batch.fields[0].shape.count();
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double v = batch.fields[0].f32()[i];
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / count, 0, 2e-3);
  EXPECT_NEAR(std::sqrt(squares / count), 1, 2e-3);
}

TEST(Registry, EveryDataSetSaysWhatItIs) {
  EXPECT_THAT(DatasetRegistry::Names(),
              testing::IsSupersetOf(
                  {"cifar10", "cifar100", "digits", "fashion_mnist", "mnist", "multi30k"}));
  for (const auto& [name, entry] : DatasetRegistry::All()) {
    SCOPED_TRACE(name);
    const auto source = entry.make();
    EXPECT_FALSE(entry.help.empty());
    if (source->is_own()) continue;
    EXPECT_GT(source->size(Split::kTrain), 0);
    EXPECT_GT(source->size(Split::kTest), 0);
    EXPECT_GT(source->classes(), 1);
    EXPECT_FALSE(source->fields().empty());
    std::set<std::string> hashes;
    bool can_be_fetched = source->files().empty();
    for (const RemoteFile& file : source->files()) {
      EXPECT_EQ(file.sha256.size(), 64u) << file.name;
      EXPECT_TRUE(hashes.insert(file.sha256).second) << file.name;
      EXPECT_GT(file.bytes, 0) << file.name;
      can_be_fetched |= !file.urls.empty();  // the others are only verified
    }
    EXPECT_TRUE(can_be_fetched);
  }
}

}  // namespace
}  // namespace dtrain
