// `data.validation`, and test splits of sets that have none: shares of the training samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "framework/data/dataset.h"

namespace dtrain {
namespace {

// Sample i is the number i; seen in an epoch, it is i + 1000 (epoch + 1).  Its own test samples are negative.
class Numbers : public Dataset {
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

class NumbersSource : public DatasetSource {
 public:
  explicit NumbersSource(double test_share) : test_share_(test_share) {}
  std::vector<FieldSpec> fields() const override { return Numbers().fields(); }
  int64_t size(Split split) const override { return Numbers().size(split); }
  int64_t classes() const override { return 1; }
  double test_share() const override { return test_share_; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    return std::make_unique<Numbers>();
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
  const auto source = std::make_shared<NumbersSource>(0);
  EXPECT_EQ(HoldOut(source, 0), source);
}

TEST(HeldOut, EverySampleIsInOneSplit) {
  const auto source = HoldOut(std::make_shared<NumbersSource>(0.2), 0.1);
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
  const auto source = HoldOut(std::make_shared<NumbersSource>(0), 0.1);
  EXPECT_EQ(NumbersIn(*source->Load("", 1), Split::kValidation, kNoEpoch),
            NumbersIn(*source->Load("", 2), Split::kValidation, kNoEpoch));
}

TEST(HeldOut, OnlyTrainingSamplesAreAugmented) {
  const auto set = HoldOut(std::make_shared<NumbersSource>(0), 0.1)->Load("", 1);
  for (const int32_t number : NumbersIn(*set, Split::kTrain, 4)) EXPECT_GE(number, 5000);
  for (const int32_t number : NumbersIn(*set, Split::kValidation, 4)) EXPECT_LT(number, 100);
}

TEST(HeldOut, ATestSplitOfItsOwnStays) {
  const auto source = HoldOut(std::make_shared<NumbersSource>(0), 0.1);
  EXPECT_EQ(source->size(Split::kTest), 7);
  EXPECT_EQ(NumbersIn(*source->Load("", 1), Split::kTest, kNoEpoch)[6], -7);
}

TEST(HeldOut, AShareHasOneSampleAtLeast) {
  const auto source = HoldOut(std::make_shared<NumbersSource>(0), 0.001);
  EXPECT_EQ(source->size(Split::kValidation), 1);
  EXPECT_EQ(source->size(Split::kTrain), 99);
  EXPECT_EQ(source->Load("", 1)->size(Split::kTrain), 99);
}

TEST(HeldOut, OtherSharesAreOtherData) {
  const auto hash = [](double test, double validation) {
    return HoldOut(std::make_shared<NumbersSource>(test), validation)->Load("", 1)->ManifestHash();
  };
  EXPECT_NE(hash(0.2, 0.1), hash(0.2, 0.2));
  EXPECT_NE(hash(0.2, 0.1), hash(0.1, 0.1));
}

}  // namespace
}  // namespace dtrain
