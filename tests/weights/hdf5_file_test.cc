#include "framework/hdf5/hdf5_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include "framework/core/error.h"
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

// Each says the file, the name and HDF5's own reason, the innermost one.
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

}  // namespace
}  // namespace dtrain
