// Tests the data set hdf5, in the layout of Caffe's HDF5Data.
#include "framework/data/tables/hdf5_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>

#include "framework/core/error.h"
#include "framework/hdf5/hdf5_file.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Hdf5Of(const std::vector<int64_t>& shape, const std::vector<float>& data,
                   const std::vector<float>& labels, const std::string& label_name = "label") {
  Hdf5Builder file(0);
  file.WriteFloats("data", shape, data.data());
  file.WriteFloats(label_name, {static_cast<int64_t>(labels.size())}, labels.data());
  return std::string(file.Finish().Content());
}

class Hdf5Data : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  TempFolder folder_;
};

TEST_F(Hdf5Data, SamplesOfAListOfFilesFollowEachOther) {
  folder_.Write("a.h5", Hdf5Of({2, 1, 1, 2}, {1, 2, 3, 4}, {0, 1}));
  folder_.Write("b.h5", Hdf5Of({1, 1, 1, 2}, {5, 6}, {2}));
  folder_.Write("list.txt", "a.h5\nb.h5\n");
  for (const std::string& train :
       {Path("list.txt"), "[" + Path("a.h5") + ", " + Path("b.h5") + "]"}) {
    const auto source = SourceOf("hdf5", "train: " + train + ", mean: [0], deviation: [1]");
    EXPECT_EQ(source->size(Split::kTrain), 3);
    EXPECT_EQ(source->classes(), 3) << "whole numbers, as Caffe stores classes";
    const auto set = source->Load("", 1);
    EXPECT_EQ(set->fields()[0].sample_shape, (Shape{1, 1, 2}));
    EXPECT_EQ(SampleOf(*set, Split::kTrain, 2), (std::pair(std::vector<float>{5, 6}, 2.0f)));
  }
}

TEST_F(Hdf5Data, NumbersAsLabels) {
  folder_.Write("a.h5", Hdf5Of({2, 2}, {1, 2, 3, 4}, {0.5f, 1}));
  const auto set = SourceOf("hdf5", "train: " + Path("a.h5"))->Load("", 1);
  EXPECT_EQ(set->classes(), 0);
  EXPECT_EQ(SampleOf(*set, Split::kTrain, 0).second, -1) << "less the mean, over the deviation";
  set->KeepTargets();
  EXPECT_EQ(SampleOf(*set, Split::kTrain, 0).second, 0.5f);
}

TEST_F(Hdf5Data, ChannelsMayBeLast) {
  std::vector<float> last(2 * 2 * 2 * 3);
  for (size_t i = 0; i < last.size(); ++i) last[i] = static_cast<float>(i);
  const std::vector<float> first = {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11};
  folder_.Write("a.h5", Hdf5Of({2, 2, 2, 3}, last, {0, 1}));
  const std::string keys = "train: " + Path("a.h5") + ", mean: [0], deviation: [1]";
  for (const char* layout : {"", ", layout: hwc"}) {
    const auto set = SourceOf("hdf5", keys + layout)->Load("", 1);
    EXPECT_EQ(set->fields()[0].sample_shape, (Shape{3, 2, 2}));
    EXPECT_EQ(SampleOf(*set, Split::kTrain, 0).first, first);
    EXPECT_THAT(set->notes()->read_as, HasSubstr("layout hwc"));
  }
  const auto as_stored = SourceOf("hdf5", keys + ", layout: chw")->Load("", 1);
  EXPECT_EQ(as_stored->fields()[0].sample_shape, (Shape{2, 2, 3}));
  EXPECT_EQ(SampleOf(*as_stored, Split::kTrain, 1).first,
            std::vector<float>(last.begin() + 12, last.end()));
  // Only the first sample is kept, and mean and deviation are those of all.
  const auto kept = SourceOf("hdf5", "train: " + Path("a.h5"));
  const auto all = kept->Load("", 1);
  const auto limited = [&] {
    auto source = DatasetRegistry::Get("data set", "hdf5").make();
    source->KeepFirst(1);
    config::Document document = config::Document::FromText("{train: " + Path("a.h5") + "}", "t");
    config::Reader reader = document.root();
    source->Configure(reader);
    document.Finish();
    return source->Load("", 1);
  }();
  EXPECT_EQ(limited->size(Split::kTrain), 1);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(SampleOf(*limited, Split::kTrain, 0).first[i],
                SampleOf(*all, Split::kTrain, 0).first[i], 1e-6);
  }
}

// Where the shape does not tell, they are first, as in Caffe's files.
TEST_F(Hdf5Data, WhereTheShapeDoesNotTellChannelsAreFirst) {
  folder_.Write("a.h5", Hdf5Of({1, 5, 2, 7}, std::vector<float>(70), {0}));
  const auto set = SourceOf("hdf5", "train: " + Path("a.h5"))->Load("", 1);
  EXPECT_EQ(set->fields()[0].sample_shape, (Shape{5, 2, 7}));
  EXPECT_THAT(set->notes()->read_as, HasSubstr("layout chw (guessed)"));
}

TEST_F(Hdf5Data, AVectorAsCaffeStoresItIsNoImage) {
  std::vector<float> numbers(2 * 13);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  folder_.Write("a.h5", Hdf5Of({2, 13, 1, 1}, numbers, {0, 1}));
  const auto set =
      SourceOf("hdf5", "train: " + Path("a.h5") + ", mean: [0], deviation: [1]")->Load("", 1);
  EXPECT_EQ(set->fields()[0].sample_shape, (Shape{13, 1, 1}));
  EXPECT_THAT(set->notes()->read_as, HasSubstr("layout chw (guessed)"));
}

TEST_F(Hdf5Data, OtherFilesAreRefusedByName) {
  const auto refusal = [&](const std::string& bytes) {
    folder_.Write("a.h5", bytes);
    return WhatOf<DataError>([&] { SourceOf("hdf5", "train: " + Path("a.h5")); });
  };
  EXPECT_THAT(refusal(Hdf5Of({1, 1}, {1}, {0}, "labels")),
              AllOf(HasSubstr("a.h5: it has no data set 'label'"), HasSubstr("data, labels")));
  EXPECT_THAT(refusal(Hdf5Of({2, 1}, {1, 2}, {0})), HasSubstr("2 samples and 1 labels"));
  EXPECT_THAT(refusal("no HDF5"), HasSubstr("a.h5"));
  const std::string sound = Hdf5Of({2, 1}, {1, 2}, {0, 1});
  EXPECT_THAT(refusal(sound.substr(0, sound.size() / 2)), HasSubstr("a.h5"));
}

// Adds a data set of this type, which Hdf5Builder cannot write; without `values` it is an empty one.
void Add(const std::filesystem::path& path, const char* name, const std::vector<hsize_t>& shape,
         hid_t type, const double* values = nullptr) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(set, 0);
  if (values != nullptr) {
    EXPECT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
  }
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
}

TEST_F(Hdf5Data, EmptyLabelsAreRefused) {
  for (const char* task : {"auto", "regression", "classification"}) {
    folder_.Write("a.h5", Hdf5Of({2, 1}, {1, 2}, {0, 1}, "other"));
    Add(Path("a.h5"), "label", {2, 0}, H5T_IEEE_F32LE);
    const std::string keys = fmt::format("train: {}, task: {}", Path("a.h5"), task);
    EXPECT_THAT(WhatOf<DataError>([&] { SourceOf("hdf5", keys)->Load("", 1); }),
                HasSubstr("a.h5: its labels are empty"));
  }
}

// A float has no digit left for the last one of 2^24 + 1.
TEST_F(Hdf5Data, FilesOfFloatsAndOfDoublesAreReadAsDoubles) {
  const auto write = [&](const std::string& name, hid_t type, const std::vector<double>& values) {
    Hdf5Builder file(0);
    const float labels[] = {0, 1};
    file.WriteFloats("label", {2}, labels);
    folder_.Write(name, std::string(file.Finish().Content()));
    Add(Path(name), "data", {2, 1}, type, values.data());
  };
  const auto samples = [&](const char* first, const char* second) {
    const auto set =
        SourceOf("hdf5", fmt::format("train: [{}, {}]", Path(first), Path(second)))->Load("", 1);
    EXPECT_EQ(set->notes()->files, Path(first) + " and 1 more");
    std::vector<float> values;
    for (int64_t i = 0; i < 4; ++i) values.push_back(SampleOf(*set, Split::kTrain, i).first[0]);
    return values;
  };
  write("floats.h5", H5T_IEEE_F32LE, {16777214, 16777216});
  write("doubles.h5", H5T_IEEE_F64LE, {16777216, 16777217});
  const auto deviation = static_cast<float>(std::sqrt(1.1875));
  const auto near = [&](float value) { return testing::FloatNear(value / deviation, 1e-6f); };
  EXPECT_THAT(samples("floats.h5", "doubles.h5"),
              ElementsAre(near(-1.75f), near(0.25f), near(0.25f), near(1.25f)));
  EXPECT_THAT(samples("doubles.h5", "floats.h5"),
              ElementsAre(near(0.25f), near(1.25f), near(-1.75f), near(0.25f)));
  write("short.h5", H5T_STD_I16LE, {1, 3});
  write("long.h5", H5T_STD_I64LE, {1, 3});
  EXPECT_THAT(samples("short.h5", "long.h5"), ElementsAre(-1, 1, -1, 1));
}

TEST_F(Hdf5Data, TheNamesOfSetsAreAHintOnlyWhereTheyAreMissing) {
  const auto hint = [&](const std::string& bytes) {
    folder_.Write("a.h5", bytes);
    try {
      SourceOf("hdf5", "train: " + Path("a.h5"));
    } catch (const DataError& error) {
      return error.hint();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(hint(Hdf5Of({1, 1}, {1}, {0}, "labels")), HasSubstr("data.label_set"));
  EXPECT_THAT(hint("no HDF5"), Not(HasSubstr("label")));
}

// Damaged bytes may crash the HDF5 library in the child process.  The file is then refused, or
// other numbers are read.
TEST_F(Hdf5Data, DamageDoesNotCrashThisProcess) {
  const std::string sound = Hdf5Of({4, 3}, std::vector<float>(12, 1), {0, 1, 2, 0});
  int refused = 0;
  for (size_t at = 0; at < sound.size(); at += sound.size() / 60) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    folder_.Write("a.h5", damaged);
    try {
      SourceOf("hdf5", "train: " + Path("a.h5"))->Load("", 1);
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace dtrain
