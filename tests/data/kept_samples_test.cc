// Tests `data.limit` on the user's own tables: unused samples are not kept in memory, and
// statistics of all samples stay the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/data/images/image_set.h"
#include "framework/data/tables/channel_moments.h"
#include "framework/data/tables/csv.h"
#include "framework/data/tables/hdf5_table.h"
#include "framework/data/tables/npy.h"
#include "framework/hdf5/hdf5_file.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 40, kKept = 7;

// Returns values with a different one at neighbouring places.
std::vector<float> Values(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((i * 37 + i / 5) % 101) / 7 + 1000);
  }
  return values;
}

class KeptSamples : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // Loads the first kKept samples.  If `limited`, the source keeps no more than these in memory.
  std::shared_ptr<const Dataset> Load(const std::string& name, const std::string& keys,
                                      bool limited) const {
    config::Document document = config::Document::FromText("data: {" + keys + "}", "test.yaml");
    config::Reader reader = document.root().Section("data");
    std::shared_ptr<DatasetSource> source = DatasetRegistry::Get("data set", name).make();
    if (limited) source->KeepFirst(kKept);
    source->Configure(reader);
    document.Finish();
    EXPECT_EQ(source->size(Split::kTrain), kSamples);
    return LimitSource(source, kKept)->Load("", 1);
  }

  // Expects the kept samples and all statistics to equal those of the whole set.
  void ExpectTheSame(const std::string& name, const std::string& keys) const {
    const auto kept = Load(name, keys, true), whole = Load(name, keys, false);
    ASSERT_EQ(kept->size(Split::kTrain), kKept);
    EXPECT_EQ(kept->classes(), whole->classes());
    const ImageSetSpec &own = *kept->image_info(), &all = *whole->image_info();
    EXPECT_EQ(own.class_names, all.class_names);
    for (int64_t c = 0; c < own.image_shape[0]; ++c) {
      EXPECT_NEAR(own.mean[c], all.mean[c], 1e-6 * std::abs(all.mean[c])) << c;
      EXPECT_NEAR(own.deviation[c], all.deviation[c], 1e-6 * all.deviation[c]) << c;
    }
    for (int64_t i = 0; i < kKept; ++i) {
      const auto [values, label] = SampleOf(*kept, Split::kTrain, i);
      const auto [expected, expected_label] = SampleOf(*whole, Split::kTrain, i);
      EXPECT_EQ(label, expected_label);
      for (size_t v = 0; v < values.size(); ++v) EXPECT_NEAR(values[v], expected[v], 1e-3);
    }
  }

  TempFolder folder_;
};

std::string CsvText(const std::vector<std::string>& labels) {
  const std::vector<float> values = Values(2 * kSamples);
  std::string text = "a,b,kind\n";
  for (int64_t i = 0; i < kSamples; ++i) {
    text += fmt::format("{},{},{}\n", values[2 * i], values[2 * i + 1], labels[i]);
  }
  return text;
}

// The labels are sorted, so that the first samples all have one class.
std::vector<std::string> SortedLabels(const std::vector<std::string>& words) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < kSamples; ++i) labels.push_back(words[i * std::ssize(words) / kSamples]);
  return labels;
}

TEST_F(KeptSamples, OfACsvFile) {
  for (const auto& words : {std::vector<std::string>{"low", "mid", "up"},
                            {"0", "1", "2", "3"},
                            {"2", "x"},
                            {"0.5", "7"}}) {
    folder_.Write("t.csv", CsvText(SortedLabels(words)));
    ExpectTheSame("csv", "train: " + Path("t.csv"));
    ExpectTheSame("csv", "train: " + Path("t.csv") + ", mean: [3], deviation: [2]");
  }
}

TEST_F(KeptSamples, OfACsvFileAreAllThatIsInMemory) {
  folder_.Write("t.csv", CsvText(SortedLabels({"low", "up"})));
  CsvFormat format;
  format.keep = kKept;
  const CsvTable csv = ReadCsv(Path("t.csv"), format);
  EXPECT_EQ(csv.table.samples, kSamples);
  EXPECT_EQ(std::ssize(csv.table.labels.numbers), kSamples);
  EXPECT_EQ(CountOf(csv.table.read().numbers), 2u * kKept);
  EXPECT_TRUE(csv.table.read().of_all.has_value());
}

// Lines that are not kept are still checked.
TEST_F(KeptSamples, ALaterLineOfACsvFileIsRefusedByItsNumber) {
  folder_.Write("t.csv", CsvText(SortedLabels({"low", "up"})) + "1,oops,low\n");
  EXPECT_THAT(WhatOf<DataError>([&] { Load("csv", "train: " + Path("t.csv"), true); }),
              HasSubstr("line 42: column 2 ('b') is 'oops'"));
}

std::string NpyKeys(const std::string& train, const std::string& labels) {
  return fmt::format("train: {}, train_labels: {}", train, labels);
}

TEST_F(KeptSamples, OfNpyFiles) {
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < kSamples; ++i) labels.push_back(i / 10);
  folder_.Write("y.npy", NpyOf<int32_t>("<i4", "40,", labels));
  for (const auto& [shape, each] :
       {std::pair("40, 6", 6), std::pair("40,", 1), std::pair("40, 2, 3", 6),
        std::pair("40, 3, 2, 5", 30), std::pair("40, 2, 5, 3", 30)}) {
    SCOPED_TRACE(shape);
    folder_.Write("x.npy", NpyOf<float>("<f4", shape, Values(kSamples * each)));
    ExpectTheSame("npy", NpyKeys(Path("x.npy"), Path("y.npy")));
    ExpectTheSame("npy", NpyKeys(Path("x.npy"), Path("y.npy")) + ", mean: [3], deviation: [2]");
    std::vector<uint8_t> bytes;
    for (int i = 0; i < kSamples * each; ++i) bytes.push_back(static_cast<uint8_t>(i * 7 % 251));
    folder_.Write("x.npy", NpyOf<uint8_t>("|u1", shape, bytes));
    ExpectTheSame("npy", NpyKeys(Path("x.npy"), Path("y.npy")));
  }
}

TEST_F(KeptSamples, OfNpyFilesAreReadAndNoMoreWhereNothingIsMeasured) {
  const std::string file = NpyOf<float>("<f4", "40, 2", Values(2 * kSamples));
  folder_.Write("x.npy", file.substr(0, file.size() - 4));
  EXPECT_EQ(CountOf(ReadNpyPart(Path("x.npy"), {.keep = kKept}).numbers), 2u * kKept);
  EXPECT_THAT(
      WhatOf<DataError>([&] { ReadNpyPart(Path("x.npy"), {.keep = kKept, .measure = true}); }),
      HasSubstr("x.npy ends at byte"));
  folder_.Write("x.npy", file + "more");
  EXPECT_THAT(
      WhatOf<DataError>([&] { ReadNpyPart(Path("x.npy"), {.keep = kKept, .measure = true}); }),
      HasSubstr("content follows"));
}

std::string Hdf5Text(const std::vector<int64_t>& shape, int64_t begin, int64_t each) {
  const std::vector<float> all = Values(kSamples * each);
  Hdf5Builder file(0);
  std::vector<float> labels;
  for (int64_t i = 0; i < shape[0]; ++i) labels.push_back(static_cast<float>((begin + i) / 10));
  file.WriteFloats("data", shape, all.data() + begin * each);
  file.WriteFloats("label", {shape[0]}, labels.data());
  return std::string(file.Finish().Content());
}

// The first file ends before, at and after the last kept sample.
TEST_F(KeptSamples, OfHdf5Files) {
  for (const auto& sample : {std::vector<int64_t>{3}, {3, 1, 2}, {2, 3}}) {
    for (const int64_t first : {3, 7, 25}) {
      int64_t each = 1;
      for (const int64_t extent : sample) each *= extent;
      std::vector<int64_t> shape = {first};
      shape.insert(shape.end(), sample.begin(), sample.end());
      folder_.Write("a.h5", Hdf5Text(shape, 0, each));
      shape[0] = kSamples - first;
      folder_.Write("b.h5", Hdf5Text(shape, first, each));
      const std::string keys = fmt::format("train: [{}, {}]", Path("a.h5"), Path("b.h5"));
      SCOPED_TRACE(fmt::format("{} of {}", first, each));
      ExpectTheSame("hdf5", keys);
      ExpectTheSame("hdf5", keys + ", mean: [3], deviation: [2]");
    }
  }
}

TEST_F(KeptSamples, ALimitAboveAllIsNone) {
  folder_.Write("t.csv", "1,2,0\n3,4,1\n");
  CsvFormat format;
  format.keep = 2;
  EXPECT_FALSE(ReadCsv(Path("t.csv"), format).table.read().of_all.has_value());
}

// A large mean does not cost the deviation any digits.
TEST(ChannelMoments, AreThoseOfTheSamples) {
  ChannelMoments moments(2, 2);
  const std::vector<float> samples = {1e7f + 1, 1e7f + 3, -1, 1, 1e7f + 1, 1e7f + 3, -3, 3};
  moments.Add(samples.data(), 2);
  EXPECT_THAT(moments.means(), ElementsAre(1e7 + 2, 0));
  EXPECT_THAT(moments.variances(), ElementsAre(1, 5));
}

}  // namespace
}  // namespace dtrain
