// Odd images, made by odd_images.py, are decoded as PIL decodes them or refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/images/image_file.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kPython = "/usr/bin/python3";  // Debian's packages are installed for it

// A line of list.tsv.
struct OddImage {
  std::string name, orientation, verdict;
  int64_t rows = 0, columns = 0;
  int tolerance = 0;
  std::string reason;
};

OddImage ReadLine(const std::string& line) {
  OddImage image;
  std::istringstream in(line);
  const auto word = [&in](std::string& to) { std::getline(in, to, '\t'); };
  word(image.name);
  word(image.orientation);
  word(image.verdict);
  if (image.verdict == "read") {
    in >> image.rows >> image.columns >> image.tolerance;
  } else {
    word(image.reason);
  }
  return image;
}

std::vector<OddImage> ReadList(const std::filesystem::path& path) {
  std::vector<OddImage> images;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) images.push_back(ReadLine(line));
  return images;
}

std::vector<uint8_t> DecodedFile(const std::filesystem::path& path, const Shape& shape,
                                 Orientation orientation) {
  std::vector<uint8_t> image(static_cast<size_t>(shape.count()));
  DecodeImage(ReadFile(path), path.string(), shape, Fit::kNone, orientation, image.data());
  return image;
}

// Returns the largest difference of any pixel from PIL's, whose channels are interleaved.
int Distance(const std::vector<uint8_t>& image, const std::string& expected, int64_t channels) {
  const size_t pixels = image.size() / static_cast<size_t>(channels);
  if (expected.size() != image.size()) return 256;
  int distance = 0;
  for (size_t i = 0; i < image.size(); ++i) {
    const size_t there = i % pixels * static_cast<size_t>(channels) + i / pixels;
    distance = std::max(distance, std::abs(image[i] - static_cast<uint8_t>(expected[there])));
  }
  return distance;
}

class OddImages : public testing::Test {
 protected:
  std::vector<OddImage> Make() {
    const std::string script = DTRAIN_SOURCE_DIR "/tests/data/odd_images.py ";
    const std::string command = std::string(kPython) + " -B " + script + folder_.path().string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return ReadList(folder_ / "list.tsv");
  }

  void ExpectAsPil(const OddImage& image) {
    SCOPED_TRACE(image.name + " " + image.orientation);
    const Orientation orientation = OrientationOf(image.orientation);
    EXPECT_EQ(ReadImageSize(folder_ / image.name, orientation),
              (ImageSize{image.rows, image.columns}));
    const auto distance = [&](int64_t channels, const std::string& ending) {
      const Shape shape = {channels, image.rows, image.columns};
      return Distance(DecodedFile(folder_ / image.name, shape, orientation),
                      ReadFile(folder_ / (image.name + "." + image.orientation + ending)),
                      channels);
    };
    EXPECT_LE(distance(3, ".rgb"), image.tolerance);
    EXPECT_LE(distance(1, ".l"), image.tolerance) << "grey";
  }

  void ExpectRefused(const OddImage& image) {
    const std::string path = (folder_ / image.name).string();
    const std::string what = WhatOf<DataError>([&] {
      DecodedFile(path, {3, 64, 64}, OrientationOf(image.orientation));
    });
    EXPECT_THAT(what, AllOf(StartsWith(path + ": "), HasSubstr(image.reason)));
  }

  TempFolder folder_;
};

TEST_F(OddImages, AreReadAsPilReadsThemOrRefusedByName) {
  if (std::system((std::string(kPython) + " -c 'import PIL, numpy' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no PIL or numpy for " << kPython;
  }
  const std::vector<OddImage> images = Make();
  EXPECT_GE(images.size(), 200u);
  for (const OddImage& image : images) {
    if (image.verdict == "read") {
      EXPECT_NO_THROW(ExpectAsPil(image)) << image.name;
    } else {
      ExpectRefused(image);
    }
  }
}

}  // namespace
}  // namespace dtrain
