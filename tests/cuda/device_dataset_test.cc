// Compares batches that are made in the GPU's memory with those made in host memory.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "framework/core/random.h"
#include "framework/data/batches.h"
#include "framework/data/device_dataset.h"
#include "framework/data/images/image_set.h"
#include "framework/data/tables/number_set.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {
namespace {

constexpr int64_t kTrain = 70, kTest = 30;

LabelledImages Noise(int64_t samples, uint64_t seed) {
  LabelledImages images;
  const Random random(seed, Purpose::kSelfTest);
  for (int64_t i = 0; i < samples * 3 * 6 * 5; ++i) {
    images.images.push_back(static_cast<uint8_t>(random.Below(static_cast<uint64_t>(i), 256)));
  }
  for (int64_t i = 0; i < samples; ++i) images.labels.push_back(static_cast<uint8_t>(i * 7 % 10));
  return images;
}

// The images are not square, and the padding of 4 allows crops that keep only a small part of an
// image.
std::shared_ptr<const Dataset> Images() {
  const ImageSetSpec spec = {Shape{3, 6, 5}, 10, {0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.25f}};
  return std::make_shared<ImageSet>(spec, Noise(kTrain, 1), Noise(kTest, 2), CropFlip{4, true}, 9);
}

// A set that is not kept on the device, because it computes its samples.
class Counted : public Dataset {
 public:
  int64_t size(Split) const override { return kTrain; }
  std::vector<FieldSpec> fields() const override {
    return {{"words", DType::kI32, Shape{8}}, {"label", DType::kI32, Shape{}}};
  }
  int64_t classes() const override { return 10; }
  // The length is the one of the longest sample of the batch.
  void SampleShapes(Split, std::span<const int64_t> indices,
                    std::span<Shape> shapes) const override {
    shapes[0] = Shape{1 + std::ranges::max(indices) % 8};
  }
  void Fill(Split, std::span<const int64_t> indices, uint64_t epoch, Batch& batch) const override {
    const int64_t length = batch.fields[0].shape[1];
    for (size_t row = 0; row < indices.size(); ++row) {
      for (int64_t i = 0; i < length; ++i) {
        batch.fields[0].i32()[static_cast<int64_t>(row) * length + i] =
            static_cast<int32_t>(indices[row] * 100 + i);
      }
      batch.fields[1].i32()[row] = static_cast<int32_t>(indices[row]);
    }
  }
  std::string ManifestHash() const override { return "counted"; }
};

std::vector<std::byte> BytesOf(const Batch& batch) {
  std::vector<std::byte> bytes;
  for (const Tensor& field : batch.fields) {
    std::vector<std::byte> own(static_cast<size_t>(field.shape.count()) * SizeOf(field.dtype));
    if (batch.on_device) {
      const auto queue = DeviceUnderTest().queue->Another();  // a queue of the calling thread
      queue->Download(own.data(), field.data, own.size());
      queue->Record().Wait();
    } else {
      std::memcpy(own.data(), field.data, own.size());
    }
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return bytes;
}

// Compares two epochs of training batches, then both splits in order, in blocks of several sizes.
void ExpectTheSameBatches(const std::shared_ptr<const Dataset>& set) {
  const std::shared_ptr<const Dataset> there = OnDevice(set, DeviceUnderTest());
  EXPECT_EQ(there->ManifestHash(), set->ManifestHash());
  const Sampler sampler(3, *set, 16);
  const auto compare = [](Prefetcher& expected, Prefetcher& actual) {
    int64_t samples = 0;
    while (const Batch* of = expected.Next()) {
      const Batch* const is = actual.Next();
      ASSERT_NE(is, nullptr);
      EXPECT_TRUE(is->on_device);
      EXPECT_EQ(is->samples, of->samples);
      ASSERT_EQ(BytesOf(*is), BytesOf(*of)) << "behind " << samples << " samples";
      samples += of->samples;
    }
    EXPECT_EQ(actual.Next(), nullptr);
    EXPECT_GT(samples, 0);
  };
  {
    const auto batches = [&](const Dataset& from) {
      return TrainingBatches(from, sampler, 1, 3, 0, 2 * sampler.steps_per_epoch());
    };
    Prefetcher expected(*set, sampler.MaxShare(3), batches(*set));
    Prefetcher actual(*there, sampler.MaxShare(3), batches(*there));
    compare(expected, actual);
  }
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const auto batches = [&](const Dataset& from) {
      return EvaluationBatches(from, split, EvaluationBlocks(from.size(split), 13));
    };
    Prefetcher expected(*set, 13, batches(*set));
    Prefetcher actual(*there, 13, batches(*there));
    compare(expected, actual);
  }
}

TEST(DeviceDataset, ImagesThatAreKeptThereAreCutAndMirroredAsOnTheCpu) {
  EXPECT_NE(Images()->KeepOn(DeviceUnderTest()), nullptr);
  ExpectTheSameBatches(Images());
}

TEST(DeviceDataset, OtherSamplesAreCopied) {
  const auto set = std::make_shared<Counted>();
  EXPECT_EQ(set->KeepOn(DeviceUnderTest()), nullptr);
  ExpectTheSameBatches(set);
}

// The loss of normalised targets is reported in the unit of the labels.
TEST(DeviceDataset, TheLossUnitOfTargetsIsThatOfTheSet) {
  ImageSetSpec spec{.image_shape = Shape{1}, .numbers = true};
  spec.target_deviation = 20;
  const auto set = std::make_shared<NumberSet>(
      spec, LabelledNumbers{.samples = std::vector<float>{1, 2, 3}, .targets = {10, 30, 50}},
      LabelledNumbers());
  const std::shared_ptr<const Dataset> there = OnDevice(set, DeviceUnderTest());
  Batch batch = there->MakeBatch(3);
  const int64_t indices[] = {0, 1, 2};
  there->Fill(Split::kTrain, indices, kNoEpoch, batch);
  EXPECT_EQ(batch.loss_unit, 400);
}

// A net on the CPU may need such a batch, for example the net that measures a run's first steps.
TEST(DeviceDataset, ABatchOfTheMachinesMemoryIsFilledAsEver) {
  const std::shared_ptr<const Dataset> set = Images();
  const std::shared_ptr<const Dataset> there = OnDevice(set, DeviceUnderTest());
  std::vector<int64_t> indices(20);
  std::iota(indices.begin(), indices.end(), 5);
  Batch expected(set->fields(), 20), actual(set->fields(), 20);
  set->Fill(Split::kTrain, indices, 1, expected);
  there->Fill(Split::kTrain, indices, 1, actual);
  EXPECT_EQ(BytesOf(actual), BytesOf(expected));
}

// A run evaluates while the batches of its next steps are made.
TEST(DeviceDataset, TwoThreadsMayFillAtOnce) {
  const std::shared_ptr<const Dataset> set = Images();
  const std::shared_ptr<const Dataset> there = OnDevice(set, DeviceUnderTest());
  const auto fill = [&](Split split) {
    for (int64_t first = 0; first < 20; ++first) {
      std::vector<int64_t> indices(10);
      std::iota(indices.begin(), indices.end(), first);
      Batch expected(set->fields(), 10), actual = there->MakeBatch(10);
      set->Fill(split, indices, 2, expected);
      there->Fill(split, indices, 2, actual);
      EXPECT_EQ(BytesOf(actual), BytesOf(expected));
    }
  };
  std::thread other([&] { fill(Split::kTest); });
  fill(Split::kTrain);
  other.join();
}

TEST(DeviceDataset, OnTheCpuItIsTheSetItself) {
  const std::shared_ptr<const Dataset> set = Images();
  EXPECT_EQ(OnDevice(set, Device{}), set);
}

}  // namespace
}  // namespace dtrain
