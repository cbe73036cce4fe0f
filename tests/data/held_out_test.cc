// Tests `data.validation`, and test splits of sets that have none: both are taken from the training
// samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <vector>

#include "framework/core/error.h"
#include "framework/data/dataset.h"
#include "framework/data/images/image_set.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

// Sample i is the number i, or i + 1000 (epoch + 1) within an epoch.  The set's own test samples
// are negative.
class Counting : public Dataset {
 public:
  int64_t size(Split split) const override {
    return split == Split::kTrain ? 100 : split == Split::kTest ? 7 : 0;
  }
  std::vector<FieldSpec> fields() const override { return {{"data", DType::kI32, Shape{}, 0}}; }
  int64_t classes() const override { return 1; }
  int64_t Terms(Split, int64_t index) const override { return index + 1; }
  std::vector<SampleLength> Lengths(Split split) const override {
    std::vector<SampleLength> lengths;
    for (int64_t i = 0; i < size(split); ++i) lengths.push_back({i, 2 * i});
    return lengths;
  }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override {
    for (size_t r = 0; r < indices.size(); ++r) {
      int64_t number = split == Split::kTest ? -1 - indices[r] : indices[r];
      if (epoch != kNoEpoch) number += 1000 * (static_cast<int64_t>(epoch) + 1);
      batch.fields[0].i32()[r] = static_cast<int32_t>(number);
    }
  }
  std::string ManifestHash() const override { return "numbers"; }
};

// The same samples, each with a class.
class CountingClasses : public Counting {
 public:
  std::span<const uint16_t> ClassOf(Split split) const override {
    return std::span(classes_).first(static_cast<size_t>(size(split)));
  }

 private:
  std::vector<uint16_t> classes_ = std::vector<uint16_t>(100);
};

template <class Set = Counting>
class CountingSource : public DatasetSource {
 public:
  explicit CountingSource(double test_share) : test_share_(test_share) {}
  std::vector<FieldSpec> fields() const override { return Counting().fields(); }
  int64_t size(Split split) const override { return Counting().size(split); }
  int64_t classes() const override { return 1; }
  double test_share() const override { return test_share_; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    return std::make_unique<Set>();
  }

 private:
  const double test_share_;
};

std::vector<int32_t> NumbersIn(const Dataset& set, Split split, uint64_t epoch) {
  std::vector<int64_t> indices(static_cast<size_t>(set.size(split)));
  std::iota(indices.begin(), indices.end(), 0);
  Batch batch(set.fields(), std::max<int64_t>(1, set.size(split)));
  batch.Resize(set.size(split));
  set.Fill(split, indices, epoch, batch);
  return {batch.fields[0].i32(), batch.fields[0].i32() + indices.size()};
}

TEST(HeldOut, NothingIsTheSourceItself) {
  const auto source = std::make_shared<CountingSource<>>(0);
  EXPECT_EQ(HoldOut(source, 0), source);
}

TEST(HeldOut, EverySampleIsInOneSplit) {
  const auto source = HoldOut(std::make_shared<CountingSource<>>(0.2), 0.1);
  const auto set = source->Load("", 1);
  EXPECT_TRUE(set->has_validation());
  std::set<int32_t> seen;
  for (const auto& [split, size] : {std::pair{Split::kTrain, 70}, std::pair{Split::kTest, 20},
                                    std::pair{Split::kValidation, 10}}) {
    EXPECT_EQ(source->size(split), size);
    EXPECT_EQ(set->size(split), size);
    const auto numbers = NumbersIn(*set, split, kNoEpoch);
    EXPECT_TRUE(std::ranges::is_sorted(numbers));
    seen.insert(numbers.begin(), numbers.end());
    const auto lengths = set->Lengths(split);
    ASSERT_EQ(lengths.size(), numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(lengths[i].length, numbers[i]);
      EXPECT_EQ(set->Terms(split, static_cast<int64_t>(i)), numbers[i] + 1);
    }
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(*seen.begin(), 0);
}

TEST(HeldOut, DoesNotDependOnTheSeed) {
  const auto source = HoldOut(std::make_shared<CountingSource<>>(0), 0.1);
  EXPECT_EQ(NumbersIn(*source->Load("", 1), Split::kValidation, kNoEpoch),
            NumbersIn(*source->Load("", 2), Split::kValidation, kNoEpoch));
}

TEST(HeldOut, OnlyTrainingSamplesAreAugmented) {
  const auto set = HoldOut(std::make_shared<CountingSource<>>(0), 0.1)->Load("", 1);
  for (const int32_t number : NumbersIn(*set, Split::kTrain, 4)) EXPECT_GE(number, 5000);
  for (const int32_t number : NumbersIn(*set, Split::kValidation, 4)) EXPECT_LT(number, 100);
}

TEST(HeldOut, ATestSplitOfItsOwnStays) {
  const auto source = HoldOut(std::make_shared<CountingSource<>>(0), 0.1);
  EXPECT_EQ(source->size(Split::kTest), 7);
  EXPECT_EQ(NumbersIn(*source->Load("", 1), Split::kTest, kNoEpoch)[6], -7);
}

TEST(HeldOut, AShareHasOneSampleAtLeast) {
  const auto source = HoldOut(std::make_shared<CountingSource<>>(0), 0.001);
  EXPECT_EQ(source->size(Split::kValidation), 1);
  EXPECT_EQ(source->size(Split::kTrain), 99);
  EXPECT_EQ(source->Load("", 1)->size(Split::kTrain), 99);
}

TEST(HeldOut, OtherSharesAreOtherData) {
  const auto hash = [](double test, double validation) {
    return HoldOut(std::make_shared<CountingSource<>>(test), validation)
        ->Load("", 1)
        ->ManifestHash();
  };
  EXPECT_NE(hash(0.2, 0.1), hash(0.2, 0.2));
  EXPECT_NE(hash(0.2, 0.1), hash(0.1, 0.1));
}

// Versions that drew from all classes at once hashed as a set without classes still does: their runs must notice that
// the split is another one.
TEST(HeldOut, ByClassIsOtherDataThanByAllSamples) {
  const auto set = HoldOut(std::make_shared<CountingSource<>>(0.2), 0.1)->Load("", 1);
  const auto by_class =
      HoldOut(std::make_shared<CountingSource<CountingClasses>>(0.2), 0.1)->Load("", 1);
  EXPECT_TRUE(set->held_out());
  EXPECT_EQ(set->ManifestHash(), DerivedHash("numbers", " held out 0.1 0.2"));
  EXPECT_NE(by_class->ManifestHash(), set->ManifestHash());
}

// A set of 20 training images of one pixel and 3 test images.
class PixelsSource : public DatasetSource {
 public:
  PixelsSource(uint8_t train, uint8_t test) : train_(train), test_(test) {}
  std::vector<FieldSpec> fields() const override { return ImageFields(kSpec); }
  int64_t size(Split split) const override { return split == Split::kTrain ? 20 : 3; }
  int64_t classes() const override { return 2; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    return std::make_unique<ImageSet>(kSpec, Of(20, train_), Of(3, test_));
  }

 private:
  static inline const ImageSetSpec kSpec{Shape{1, 1, 1}, 2};
  static LabelledImages Of(size_t samples, uint8_t pixel) {
    return {std::vector<uint8_t>(samples, pixel), std::vector<uint16_t>(samples)};
  }
  uint8_t train_, test_;
};

// Images of one pixel with these numbers of samples of each class, sorted by class as a folder's are.
class ClassesSource : public DatasetSource {
 public:
  explicit ClassesSource(std::vector<int> samples) {
    for (size_t c = 0; c < samples.size(); ++c) {
      labels_.insert(labels_.end(), static_cast<size_t>(samples[c]), static_cast<uint16_t>(c));
    }
  }
  std::vector<FieldSpec> fields() const override { return ImageFields(Spec()); }
  int64_t size(Split split) const override {
    return split == Split::kTrain ? static_cast<int64_t>(labels_.size()) : 0;
  }
  int64_t classes() const override { return labels_.back() + 1; }
  double test_share() const override { return 0.1; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    return std::make_unique<ImageSet>(
        Spec(), LabelledImages{std::vector<uint8_t>(labels_.size()), labels_}, LabelledImages());
  }

 private:
  ImageSetSpec Spec() const { return {Shape{1, 1, 1}, labels_.back() + 1}; }
  std::vector<uint16_t> labels_;
};

// Returns the samples of each class in the splits of the set, 0.1 of which test.
std::array<std::vector<int>, 3> CountsOf(const std::vector<int>& samples, double validation = 0.2) {
  const auto source = HoldOut(std::make_shared<ClassesSource>(samples), validation);
  const auto set = source->Load("", 1);
  std::array<std::vector<int>, 3> counts;
  for (const Split split : kSplits) {
    std::vector<int>& of_split = counts[static_cast<size_t>(split)];
    of_split.resize(samples.size());
    EXPECT_EQ(set->size(split), source->size(split));
    EXPECT_EQ(static_cast<int64_t>(set->ClassOf(split).size()), set->size(split));
    std::vector<int64_t> indices(set->ClassOf(split).size());
    std::iota(indices.begin(), indices.end(), 0);
    Batch batch(set->fields(), std::max<int64_t>(1, set->size(split)));
    batch.Resize(set->size(split));
    set->Fill(split, indices, kNoEpoch, batch);
    for (size_t i = 0; i < indices.size(); ++i) {
      EXPECT_EQ(batch.fields[1].i32()[i], set->ClassOf(split)[i]);
      ++of_split[set->ClassOf(split)[i]];
    }
  }
  return counts;
}

TEST(HeldOut, EachClassGivesItsShare) {
  using testing::ElementsAre;
  const auto [train, validation, test] = CountsOf({100, 30, 10});
  EXPECT_THAT(train, ElementsAre(70, 21, 7));
  EXPECT_THAT(validation, ElementsAre(20, 6, 2));
  EXPECT_THAT(test, ElementsAre(10, 3, 1));
}

// Broken images are left out when the files are loaded.
TEST(HeldOut, TooFewSamplesAreRefused) {
  const auto load = [](int samples, double validation) {
    const auto source = std::make_shared<ClassesSource>(std::vector<int>{samples});
    return HoldOut(source, validation)->Load("", 1)->size(Split::kTrain);
  };
  EXPECT_EQ(load(3, 0.1), 1);
  EXPECT_EQ(WhatOf<DataError>([&] { load(2, 0.1); }),
            "2 of 2 training samples would be held out: none is left to train on");
  EXPECT_EQ(WhatOf<DataError>([&] { load(1, 0); }),
            "1 of 1 training sample would be held out: none is left to train on");
}

TEST(HeldOut, ARareClassStaysInTraining) {
  for (int rare = 1; rare <= 12; ++rare) {
    for (const int others : {20, 21, 37}) {
      SCOPED_TRACE(testing::Message() << rare << " beside " << others);
      const auto [train, validation, test] = CountsOf({others, rare, others, 1});
      EXPECT_GE(train[1], 1);
      EXPECT_EQ(train[3], 1);
      EXPECT_NEAR(train[1], 0.7 * rare, 1);
      EXPECT_NEAR(validation[1], 0.2 * rare, 1);
      EXPECT_NEAR(test[1], 0.1 * rare, 1);
    }
  }
}

TEST(HeldOut, TheOnlySampleOfAClassIsTrainedOn) {
  for (const double validation : {0.3, 0.4, 0.5, 0.6}) {
    for (int others = 4; others <= 12; ++others) {
      const auto train = std::get<0>(CountsOf({others, 1, others}, validation));
      EXPECT_EQ(train[1], 1) << others << " beside it, " << validation << " held out";
    }
  }
}

TEST(HeldOut, TheHashOfEachSplitIsOfItsOwnSamples) {
  const auto hashes = [](uint8_t train, uint8_t test, double validation, int64_t limit) {
    std::shared_ptr<const DatasetSource> source = std::make_shared<PixelsSource>(train, test);
    source = LimitSource(HoldOut(source, validation), limit);
    const auto set = source->Load("", 1);
    EXPECT_EQ(set->Hashes().all, set->ManifestHash());
    return set->Hashes();
  };
  const DataHashes base = hashes(1, 2, 0.2, 10);
  const DataHashes other_test = hashes(1, 3, 0.2, 10);
  EXPECT_NE(other_test.all, base.all);
  EXPECT_EQ(other_test[Split::kTrain], base[Split::kTrain]);
  EXPECT_EQ(other_test[Split::kValidation], base[Split::kValidation]);
  EXPECT_NE(other_test[Split::kTest], base[Split::kTest]);
  for (const DataHashes& other :
       {hashes(2, 2, 0.2, 10), hashes(1, 2, 0.4, 10), hashes(1, 2, 0.2, 9)}) {
    EXPECT_NE(other.all, base.all);
    EXPECT_NE(other[Split::kTrain], base[Split::kTrain]);
    EXPECT_NE(other[Split::kValidation], base[Split::kValidation]);
  }
  EXPECT_EQ(hashes(2, 2, 0.2, 10)[Split::kTest], base[Split::kTest]);
  // Sets without a wrapper report hashes per split as well.
  const DataHashes whole = PixelsSource(1, 2).Load("", 1)->Hashes();
  EXPECT_EQ(PixelsSource(1, 3).Load("", 1)->Hashes()[Split::kTrain], whole[Split::kTrain]);
  EXPECT_NE(PixelsSource(1, 3).Load("", 1)->Hashes()[Split::kTest], whole[Split::kTest]);
}

TEST(HeldOut, ASetThatKnowsOneHashAloneKeepsItAlone) {
  const DataHashes hashes =
      HoldOut(std::make_shared<CountingSource<>>(0.2), 0.1)->Load("", 1)->Hashes();
  EXPECT_FALSE(hashes.all.empty());
  EXPECT_EQ(hashes.splits, DataHashes{}.splits);
}

}  // namespace
}  // namespace dtrain
