// Tests the real CIFAR-10 if DTRAIN_DATA has it: the original files or a copy with the same images.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "framework/core/sha256.h"
#include "framework/data/images/image_set.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

constexpr int kPixels = 1024;  // per channel

std::vector<int> CountLabels(const LabelledImages& images, size_t begin, size_t end) {
  std::vector<int> counts(10);
  for (size_t i = begin; i < end; ++i) ++counts.at(images.labels[i]);
  return counts;
}

struct Moments {
  double mean = 0;
  double deviation = 0;         // over all pixels
  double deviation_inside = 0;  // within one image (divisor n - 1), averaged over all images
};

// Returns the moments of one channel over all images, with pixels from 0 to 1.
Moments MomentsOf(const LabelledImages& images, int channel) {
  double sum = 0, squares = 0, inside = 0;
  const auto count = static_cast<double>(images.labels.size());
  for (size_t i = 0; i < images.labels.size(); ++i) {
    const uint8_t* pixels = &images.images[(3 * i + channel) * kPixels];
    double own_sum = 0, own_squares = 0;
    for (int p = 0; p < kPixels; ++p) {
      own_sum += pixels[p] / 255.0;
      own_squares += pixels[p] / 255.0 * (pixels[p] / 255.0);
    }
    const double own_mean = own_sum / kPixels;
    const double own_spread = own_squares - kPixels * own_mean * own_mean;
    inside += std::sqrt(std::max(own_spread / (kPixels - 1), 0.0));
    sum += own_sum;
    squares += own_squares;
  }
  const double mean = sum / (count * kPixels);
  return {mean, std::sqrt(squares / (count * kPixels) - mean * mean), inside / count};
}

// Returns the SHA-256 of the first 10 records as the file stores them: label, then pixels.
std::string FirstRecords(const LabelledImages& images) {
  Sha256 hash;
  for (int i = 0; i < 10; ++i) {
    hash.Update(&images.labels[i], 1);
    hash.Update(&images.images[i * 3 * kPixels], 3 * kPixels);
  }
  return hash.HexDigest();
}

void CheckTraining(const LabelledImages& train) {
  EXPECT_EQ(CountLabels(train, 0, 50000), std::vector<int>(10, 5000));
  // The batches are in order.
  EXPECT_EQ(CountLabels(train, 0, 10000),
            (std::vector<int>{1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981}));
  EXPECT_EQ(CountLabels(train, 40000, 50000),
            (std::vector<int>{1014, 1014, 952, 1016, 997, 1025, 980, 977, 1003, 1022}));
  EXPECT_EQ(FirstRecords(train),
            "4b476a15de126c363d1a504674d81f86aa5192133c1bf6328631fa3b35d1c08f");
  const double mean[] = {0.4914, 0.4822, 0.4465};
  const double deviation[] = {0.2470, 0.2435, 0.2616};
  const double inside[] = {0.2023, 0.1994, 0.2010};
  for (int c = 0; c < 3; ++c) {
    const Moments moments = MomentsOf(train, c);
    EXPECT_NEAR(moments.mean, mean[c], 1e-4) << c;
    EXPECT_NEAR(moments.deviation, deviation[c], 1e-4) << c;
    EXPECT_NEAR(moments.deviation_inside, inside[c], 1e-4) << c;
  }
}

// One test checks everything, because unpacking is slow.
TEST(Cifar10, RealFiles) {
  const std::filesystem::path root = RealDataRoot("cifar10");
  if (root.empty()) GTEST_SKIP() << NoRealData("cifar10");
  const auto source = DatasetRegistry::Get("data set", "cifar10").make();
  const auto set = source->Load(LocateData("cifar10", root), 1);
  ASSERT_EQ(set->size(Split::kTrain), source->size(Split::kTrain));
  ASSERT_EQ(set->size(Split::kTest), source->size(Split::kTest));
  const auto& images = dynamic_cast<const ImageSet&>(*set);
  CheckTraining(images.images(Split::kTrain));
  EXPECT_EQ(CountLabels(images.images(Split::kTest), 0, 10000), std::vector<int>(10, 1000));
  EXPECT_EQ(FirstRecords(images.images(Split::kTest)),
            "e0622c9cca5025701b61f6154af79866aa78505c61a8bbdf349116f26066e5c3");
}

}  // namespace
}  // namespace dtrain
