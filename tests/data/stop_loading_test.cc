// A process that is asked to stop while it loads its data ends soon, not after its first training
// step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <signal.h>

#include <memory>
#include <string>

#include <fmt/format.h>

#include "framework/core/stop_request.h"
#include "framework/data/files/archive.h"
#include "framework/data/text/parallel_text.h"
#include "framework/hdf5/hdf5_file.h"
#include "tests/data/image_files.h"
#include "tests/data/table_files.h"
#include "tests/data/temp_folder.h"
#include "tests/support/data_source.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

class StopLoading : public testing::Test {
 protected:
  ~StopLoading() override { ForgetStopRequest(); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // Configures a source, asks for a stop and returns the error of loading.
  static std::string WhatOfLoad(const std::string& name, const std::string& keys) {
    const auto source = SourceOf(name, keys);
    RequestStop(SIGTERM);
    const std::string what = WhatOf<StoppedError>([&] { source->Load("", 1); });
    ForgetStopRequest();
    return what;
  }
  TempFolder folder_;
};

TEST_F(StopLoading, OfArraysEnds) {
  folder_.Write("x.npy", NpyOf<float>("<f4", "2, 2", {1, 2, 3, 4}));
  folder_.Write("y.npy", NpyOf<int32_t>("<i4", "2,", {0, 1}));
  EXPECT_EQ(
      WhatOfLoad("npy", fmt::format("train: {}, train_labels: {}", Path("x.npy"), Path("y.npy"))),
      "stopped by SIGTERM while reading " + Path("x.npy"));
}

// A child process reads the file.
TEST_F(StopLoading, OfHdf5Ends) {
  const std::vector<float> values = {1, 2};
  Hdf5Builder file(0);
  file.WriteFloats("data", {2, 1}, values.data());
  file.WriteFloats("label", {2}, values.data());
  folder_.Write("a.h5", std::string(file.Finish().Content()));
  EXPECT_THAT(WhatOfLoad("hdf5", "train: " + Path("a.h5")),
              HasSubstr("stopped by SIGTERM while reading"));
}

TEST_F(StopLoading, OfImagesEnds) {
  for (const char* name : {"cat/1.png", "dog/1.png"}) {
    folder_.Write(std::string("train/") + name,
                  PngOf(std::vector<uint8_t>(16), 4, 4, PNG_FORMAT_GRAY));
  }
  EXPECT_EQ(WhatOfLoad("image_folder", fmt::format("train: {}, threads: 3", Path("train"))),
            "stopped by SIGTERM while reading " + Path("train"));
}

// Tables and sentences are read together with the config, and archives on demand.
TEST_F(StopLoading, OfTextsAndArchivesEnds) {
  folder_.Write("t.csv", "1,2,0\n3,4,1\n");
  folder_.WriteTar("a.tar.gz", {{"one", "content"}});
  RequestStop(SIGUSR1);
  EXPECT_EQ(WhatOf<StoppedError>([&] { SourceOf("csv", "train: " + Path("t.csv")); }),
            "stopped by SIGUSR1 while reading " + Path("t.csv"));
  EXPECT_THAT(WhatOf<StoppedError>([&] { ReadLines(Path("t.csv")); }), HasSubstr("t.csv"));
  MemberReader member(Path("a.tar.gz"), "one");
  char byte = 0;
  EXPECT_EQ(WhatOf<StoppedError>([&] { member.Read(&byte, 1); }),
            "stopped by SIGUSR1 while reading " + Path("a.tar.gz") + ":one");
}

}  // namespace
}  // namespace dtrain
