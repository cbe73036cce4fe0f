#include "framework/hdf5/hdf5_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/hdf5/child_call.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/checkpoint/foreign_hdf5.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<hsize_t> ChunkIn(const MemoryFile& file, const std::string& name) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_stdio(access.get());
  const Hdf5Handle in(H5Fopen(file.path().c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  const Hdf5Handle data(H5Dopen2(in.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  const Hdf5Handle how(H5Dget_create_plist(data.get()), H5Pclose);
  std::vector<hsize_t> chunk(8);
  chunk.resize(static_cast<size_t>(std::max(H5Pget_chunk(how.get(), 8, chunk.data()), 0)));
  return chunk;
}

// The longest axis is halved until a chunk has at most 2^20 elements.
TEST(Hdf5File, ChunksHaveAtMostAMillionElements) {
  struct {
    std::vector<int64_t> shape;
    std::vector<hsize_t> chunk;
  } const cases[] = {
      {{}, {1}},
      {{3, 8}, {3, 8}},
      {{1 << 20}, {1 << 20}},
      {{(1 << 20) + 1}, {(1 << 19) + 1}},
      {{2, 1 << 19}, {2, 1 << 19}},
      {{3, 1 << 20}, {3, 1 << 18}},
      {{2049, 1025}, {513, 1025}},
  };
  const std::vector<float> values(3 << 20);
  for (const auto& [shape, chunk] : cases) {
    Hdf5Builder builder(0);
    builder.WriteFloats("data", shape, values.data());
    EXPECT_EQ(ChunkIn(builder.Finish(), "data"), chunk);
  }
}

TEST(Hdf5File, TextsKeepEveryByte) {
  Hdf5Builder builder(512);
  const std::string zeros("a\0b\0", 4);
  builder.WriteText("empty", "");
  builder.WriteText("group/zeros", zeros);
  builder.SetAttribute("group", "text", "");
  builder.SetAttribute("group", "number", int64_t{1} << 40);
  builder.SetAttribute("group", "name", "lenet5");
  const Hdf5Reader in(builder.Finish(), "file.h5");
  EXPECT_EQ(in.ReadText("empty"), "");
  EXPECT_EQ(in.ReadText("group/zeros"), zeros);
  EXPECT_EQ(in.TextAttribute("group", "text"), "");
  EXPECT_EQ(in.TextAttribute("group", "name"), "lenet5");
  EXPECT_EQ(in.IntAttribute("group", "number"), int64_t{1} << 40);
  EXPECT_THAT(in.DataSets("group"), ElementsAre("zeros"));
  EXPECT_THAT(in.Children("/"), ElementsAre("empty", "group"));
  EXPECT_TRUE(in.Has("group"));
  EXPECT_FALSE(in.Has("grouq"));
  EXPECT_TRUE(in.Children("grouq").empty());
  EXPECT_TRUE(in.DataSets("grouq").empty());
}

// Each error names the file, the object and HDF5's innermost reason.
TEST(Hdf5File, WhatIsNotThereIsNamed) {
  Hdf5Builder builder(0);
  const std::vector<float> values(4);
  builder.WriteFloats("two/by", {2, 2}, values.data());
  builder.WriteFloats("line", {4}, values.data());
  const Hdf5Reader in(builder.Finish(), "file.h5");
  std::vector<float> five(5);
  EXPECT_EQ(WhatOf<CheckpointError>([&] { in.ReadFloats("line", five); }),
            "cannot read file.h5: line has 4 numbers, 5 are expected");
  EXPECT_EQ(WhatOf<CheckpointError>([&] { in.ReadText("two/by"); }),
            "file.h5: two/by is not a text");
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.ShapeOf("none"); }),
              HasSubstr("cannot read file.h5: none: object 'none' doesn't exist"));
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.IntAttribute("two", "age"); }),
              HasSubstr("cannot read file.h5: two@age: "));
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.TextAttribute("two", "age"); }),
              HasSubstr("cannot read file.h5: two@age: "));
}

// Returns a file with the data set /all/data, whose values are in another file.
MemoryFile& FileWith(Hdf5Builder& builder, Elsewhere where, const std::string& other) {
  const std::vector<float> values(6);
  builder.WriteFloats("all/data", {2, 3}, values.data());
  MemoryFile& file = builder.Finish();
  MoveTo(file.path(), "all", "data", {2, 3}, where, other);
  return file;
}

class OtherFile : public ::testing::TestWithParam<Elsewhere> {
 protected:
  // Returns a file of numbers, which a reader would get if it followed the reference.
  std::string Other() const {
    const std::string path = (folder_ / "other.h5").string();
    const std::vector<float> values(6, 7);
    Hdf5Builder builder(0);
    builder.WriteFloats("data", {2, 3}, values.data());
    Spit(path, std::string(builder.Finish().Content()));
    return path;
  }
  const std::filesystem::path folder_ = FreshFolder();
};

TEST_P(OtherFile, IsNotOpened) {
  Hdf5Builder builder(0);
  const Hdf5Reader in(FileWith(builder, GetParam(), Other()), "file.h5");
  std::vector<float> values(6);
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.ReadFloats("all/data", values); }),
              HasSubstr("cannot read file.h5: all/data: "));
  EXPECT_THAT(values, ::testing::Each(0));
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.ShapeOf("all/data"); }), HasSubstr("all/data: "));
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.TypeOf("all/data"); }), HasSubstr("all/data: "));
  EXPECT_THAT(
      WhatOf<CheckpointError>([&] { in.ReadRows("all/data", 0, std::span<float>(values)); }),
      HasSubstr("all/data: "));
}

// Tests a pipe without a writer, and an endless device.
TEST_P(OtherFile, IsNotWaitedFor) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& other : {pipe, std::string("/dev/zero")}) {
    Hdf5Builder builder(0);
    const Hdf5Reader in(FileWith(builder, GetParam(), other), "file.h5");
    std::vector<float> values(6);
    EXPECT_THAT(WhatOf<CheckpointError>([&] { in.ReadFloats("all/data", values); }),
                HasSubstr("all/data: "));
  }
}

INSTANTIATE_TEST_SUITE_P(Hdf5, OtherFile, ::testing::ValuesIn(kEverywhere));

TEST(Hdf5File, SaysWhichOtherFileIsNotOpened) {
  const auto refusal = [](Elsewhere where) {
    Hdf5Builder builder(0);
    const Hdf5Reader in(FileWith(builder, where, "/etc/passwd"), "file.h5");
    return WhatOf<CheckpointError>([&] { in.ShapeOf("all/data"); });
  };
  EXPECT_EQ(refusal(Elsewhere::kExternalStorage),
            "cannot read file.h5: all/data: its values lie in another file, "
            "'/etc/passwd'; dtrain reads only this file");
  for (const Elsewhere link :
       {Elsewhere::kExternalLink, Elsewhere::kSoftLink, Elsewhere::kExternalGroup}) {
    EXPECT_EQ(refusal(link),
              "cannot read file.h5: all/data: it is a link into another file, '/etc/passwd'; "
              "dtrain reads only this file");
  }
  EXPECT_EQ(refusal(Elsewhere::kVirtual),
            "cannot read file.h5: all/data: it is a virtual data set, made of others; "
            "dtrain reads only this file");
}

// Listing the data sets checks each of them too, and names the one that leads elsewhere.
TEST(Hdf5File, AListOfDataSetsNamesWhatLeadsElsewhere) {
  Hdf5Builder builder(0);
  const Hdf5Reader in(FileWith(builder, Elsewhere::kExternalLink, "/etc/passwd"), "file.h5");
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.DataSets("all"); }),
              HasSubstr("cannot read file.h5: all/data: it is a link into another file"));
}

TEST(Hdf5File, SoftLinksWithinTheFileAreFollowed) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Hdf5Builder builder(0);
  builder.WriteFloats("all/data", {2, 3}, values.data());
  MemoryFile& bytes = builder.Finish();
  const hid_t file = OpenToChange(bytes.path());
  EXPECT_GE(H5Lcreate_soft("/all/data", file, "alias", H5P_DEFAULT, H5P_DEFAULT), 0);
  EXPECT_GE(H5Lcreate_soft("/round", file, "round", H5P_DEFAULT, H5P_DEFAULT), 0);
  H5Fclose(file);
  const Hdf5Reader in(bytes, "file.h5");
  std::vector<float> read(6);
  in.ReadFloats("alias", read);
  EXPECT_EQ(read, values);
  EXPECT_THAT(WhatOf<CheckpointError>([&] { in.ShapeOf("round"); }), HasSubstr("round: "))
      << "it leads to itself";
}

TEST(Hdf5File, RowsAreThoseOfTheWhole) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  Hdf5Builder builder(0);
  builder.WriteFloats("data", {6, 2, 2}, values.data());
  const Hdf5Reader in(builder.Finish(), "file.h5");
  std::vector<float> rows(8);
  in.ReadRows("data", 3, std::span<float>(rows));
  EXPECT_THAT(rows, ElementsAre(12, 13, 14, 15, 16, 17, 18, 19));
}

// Writes a data set that is compressed by a filter which only this process has.
void PackByOwnFilter(const MemoryFile& bytes) {
  const H5Z_class2_t filter = {
      H5Z_CLASS_T_VERS,
      300,
      1,
      1,
      "not-here",
      nullptr,
      nullptr,
      [](unsigned, size_t, const unsigned*, size_t packed, size_t*, void**) { return packed; }};
  H5Zregister(&filter);
  const hid_t file = OpenToChange(bytes.path());
  const hsize_t extent = 4;
  const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const Hdf5Handle how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(how.get(), 1, &extent);
  H5Pset_filter(how.get(), 300, H5Z_FLAG_MANDATORY, 0, nullptr);
  MakeData(file, "data", how.get(), space.get());
  const Hdf5Handle data(H5Dopen2(file, "data", H5P_DEFAULT), H5Dclose);
  const float values[4] = {1, 2, 3, 4};
  H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Fclose(file);  // all other handles must be closed first
}

// For example, h5py has lzf but HDF5 itself does not.
TEST(Hdf5File, AFilterThatIsNotHereIsNamed) {
  Hdf5Builder builder(0);
  builder.WriteText("text", "");
  MemoryFile& bytes = builder.Finish();
  RunInChild("write", [&] { PackByOwnFilter(bytes); }, {});
  const Hdf5Reader in(bytes, "file.h5");
  std::vector<float> read(4);
  EXPECT_EQ(WhatOf<CheckpointError>([&] { in.ReadFloats("data", read); }),
            "cannot read file.h5: data: it is compressed by filter 300 ('not-here'), which this "
            "HDF5 does not have");
}

}  // namespace
}  // namespace dtrain
