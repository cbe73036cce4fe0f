// Tests `data.limit`: the first samples of a set, with everything else unchanged.
#include "framework/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/data_source.h"

namespace dtrain {
namespace {

std::vector<float> Pixels(const Dataset& set, int64_t samples) {
  Batch batch(set.fields(), samples);
  std::vector<int64_t> indices(static_cast<size_t>(samples));
  std::iota(indices.begin(), indices.end(), 0);
  set.Fill(Split::kTrain, indices, kNoEpoch, batch);
  return {batch.fields[0].f32(), batch.fields[0].f32() + batch.fields[0].shape.count()};
}

TEST(Limit, TakesTheFirstSamplesOfEachSplit) {
  const auto whole = SourceOf("digits", "train_samples: 40, test_samples: 10");
  const auto first = LimitSource(whole, 16);
  EXPECT_EQ(first->size(Split::kTrain), 16);
  EXPECT_EQ(first->size(Split::kTest), 10);  // the split has no more
  EXPECT_EQ(first->classes(), whole->classes());
  EXPECT_EQ(first->fields().size(), whole->fields().size());
  const auto of_whole = whole->Load("", 1), of_first = first->Load("", 1);
  EXPECT_EQ(of_first->size(Split::kTrain), 16);
  EXPECT_EQ(of_first->size(Split::kTest), 10);
  EXPECT_EQ(Pixels(*of_first, 16), Pixels(*of_whole, 16));
  EXPECT_NE(of_first->ManifestHash(), of_whole->ManifestHash());
  EXPECT_NE(of_first->ManifestHash(), LimitSource(whole, 15)->Load("", 1)->ManifestHash());
}

class Sentences : public Dataset {
 public:
  int64_t size(Split) const override { return 5; }
  std::vector<FieldSpec> fields() const override { return {}; }
  int64_t classes() const override { return 0; }
  std::vector<SampleLength> Lengths(Split) const override { return {{9}, {8}, {7}, {6}, {5}}; }
  void Fill(Split, std::span<const int64_t>, uint64_t, Batch&) const override {}
  std::string ManifestHash() const override { return "hash"; }
};

class SentencesSource : public DatasetSource {
 public:
  std::vector<FieldSpec> fields() const override { return {}; }
  int64_t size(Split) const override { return 5; }
  int64_t classes() const override { return 0; }
  std::vector<RemoteFile> files() const override { return {}; }
  std::unique_ptr<Dataset> Load(const std::filesystem::path&, uint64_t) const override {
    return std::make_unique<Sentences>();
  }
};

TEST(Limit, KeepsTheLengthsOfTheSamplesThatAreLeft) {
  const auto source = std::make_shared<SentencesSource>();
  EXPECT_EQ(LimitSource(source, 3)->Load("", 1)->Lengths(Split::kTrain),
            (std::vector<SampleLength>{{9}, {8}, {7}}));
  EXPECT_EQ(LimitSource(source, 9)->Load("", 1)->Lengths(Split::kTrain).size(), 5U);
  const auto digits = LimitSource(SourceOf("digits", "train_samples: 40, test_samples: 10"), 16);
  EXPECT_TRUE(digits->Load("", 1)->Lengths(Split::kTrain).empty()) << "images have no length";
}

}  // namespace
}  // namespace dtrain
