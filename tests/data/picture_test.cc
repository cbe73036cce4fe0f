// JPEG and PNG: pixels, sizes, and what is broken.
#include "framework/data/images/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "tests/data/picture_files.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Decoded(const std::string& file, const Shape& shape, Fit fit = Fit::kNone) {
  std::vector<uint8_t> image(static_cast<size_t>(shape.count()));
  DecodePicture(file, "a picture", shape, fit, image.data());
  return image;
}

// [rows][columns][channels] as [channels][rows][columns].
std::vector<uint8_t> ByChannel(const std::vector<uint8_t>& pixels, int64_t channels) {
  std::vector<uint8_t> planes;
  for (int64_t c = 0; c < channels; ++c) {
    for (size_t i = static_cast<size_t>(c); i < pixels.size(); i += static_cast<size_t>(channels)) {
      planes.push_back(pixels[i]);
    }
  }
  return planes;
}

TEST(Picture, APngIsItsPixels) {
  const auto colours = NoisyPixels(9, 13, 3);
  EXPECT_EQ(Decoded(PngOf(colours, 9, 13, PNG_FORMAT_RGB), {3, 9, 13}), ByChannel(colours, 3));
  const auto grey = NoisyPixels(9, 13, 1);
  EXPECT_EQ(Decoded(PngOf(grey, 9, 13, PNG_FORMAT_GRAY), {1, 9, 13}), grey);
}

TEST(Picture, GreyBecomesThreeEqualChannelsAndColoursTheirBrightness) {
  const auto grey = NoisyPixels(5, 4, 1);
  std::vector<uint8_t> thrice;
  for (int c = 0; c < 3; ++c) thrice.insert(thrice.end(), grey.begin(), grey.end());
  EXPECT_EQ(Decoded(PngOf(grey, 5, 4, PNG_FORMAT_GRAY), {3, 5, 4}), thrice);
  const std::vector<uint8_t> black_white = {0, 0, 0, 255, 255, 255};
  EXPECT_EQ(Decoded(PngOf(black_white, 1, 2, PNG_FORMAT_RGB), {1, 1, 2}),
            (std::vector<uint8_t>{0, 255}));
  const std::vector<uint8_t> green_blue = {0, 255, 0, 0, 0, 255};
  const auto brightness = Decoded(PngOf(green_blue, 1, 2, PNG_FORMAT_RGB), {1, 1, 2});
  EXPECT_GT(brightness[0], brightness[1]);
}

TEST(Picture, WhatIsTransparentIsWhite) {
  const std::vector<uint8_t> pixels = {10, 20, 30, 255, 10, 20, 30, 0};
  EXPECT_EQ(Decoded(PngOf(pixels, 1, 2, PNG_FORMAT_RGBA), {3, 1, 2}),
            (std::vector<uint8_t>{10, 255, 20, 255, 30, 255}));
}

TEST(Picture, AJpegIsNearItsPixels) {
  for (const int64_t channels : {1, 3}) {
    const auto pixels = SmoothPixels(40, 56, channels);
    const auto decoded = Decoded(JpegOf(pixels, 40, 56, channels), {channels, 40, 56});
    const auto expected = ByChannel(pixels, channels);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(decoded[i], expected[i], 6) << i;
  }
}

// The triangle filter, in double precision: as wide as the pixels of the coarser picture.
double Triangle(const std::vector<uint8_t>& row, double scale, int64_t to) {
  const double width = std::max(1.0, 1 / scale);
  const double centre = (static_cast<double>(to) + 0.5) / scale - 0.5;
  double sum = 0, weights = 0;
  for (auto i = static_cast<int64_t>(std::floor(centre - width)); i <= centre + width; ++i) {
    const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(i) - centre) / width);
    const int64_t inside = std::clamp<int64_t>(i, 0, static_cast<int64_t>(row.size()) - 1);
    sum += weight * row[static_cast<size_t>(inside)];
    weights += weight;
  }
  return sum / weights;
}

TEST(Picture, ChangesItsSizeByATriangleFilter) {
  for (const int64_t to : {5, 12, 24, 60}) {
    const auto row = NoisyPixels(1, 24, 1, static_cast<uint64_t>(to));
    std::vector<uint8_t> pixels;
    for (int y = 0; y < 24; ++y) pixels.insert(pixels.end(), row.begin(), row.end());
    const auto decoded =
        Decoded(PngOf(pixels, 24, 24, PNG_FORMAT_GRAY), {1, to, to}, Fit::kStretch);
    for (int64_t x = 0; x < to; ++x) {
      const double expected = Triangle(row, static_cast<double>(to) / 24, x);
      ASSERT_NEAR(decoded[static_cast<size_t>(x)], expected, 1.01) << to << ", pixel " << x;
      ASSERT_EQ(decoded[static_cast<size_t>((to - 1) * to + x)], decoded[static_cast<size_t>(x)]);
    }
  }
}

// A wide picture loses its left and right ends, a high one its top and bottom.
TEST(Picture, CropCutsWhatSticksOut) {
  std::vector<uint8_t> wide;
  for (int y = 0; y < 10; ++y) {
    for (int x = 0; x < 30; ++x) wide.push_back(x < 10 ? 0 : x < 20 ? 100 : 200);
  }
  const std::vector<uint8_t> middle(100, 100);
  EXPECT_EQ(Decoded(PngOf(wide, 10, 30, PNG_FORMAT_GRAY), {1, 10, 10}, Fit::kCrop), middle);
  std::vector<uint8_t> high;
  for (int y = 0; y < 30; ++y) high.insert(high.end(), 10, y < 10 ? 0 : y < 20 ? 100 : 200);
  EXPECT_EQ(Decoded(PngOf(high, 30, 10, PNG_FORMAT_GRAY), {1, 10, 10}, Fit::kCrop), middle);
  const auto halved = Decoded(PngOf(high, 30, 10, PNG_FORMAT_GRAY), {1, 5, 5}, Fit::kCrop);
  for (const uint8_t pixel : halved) EXPECT_NEAR(pixel, 100, 40);
  EXPECT_EQ(halved[12], 100);
}

// A large JPEG is decoded at an eighth or the like; what comes out is the same picture.
TEST(Picture, ALargeJpegThatShrinksIsTheSamePicture) {
  const auto pixels = SmoothPixels(400, 300, 3);
  const auto png = Decoded(PngOf(pixels, 400, 300, PNG_FORMAT_RGB), {3, 30, 30}, Fit::kCrop);
  const auto jpeg = Decoded(JpegOf(pixels, 400, 300, 3), {3, 30, 30}, Fit::kCrop);
  for (size_t i = 0; i < png.size(); ++i) ASSERT_NEAR(jpeg[i], png[i], 8) << i;
}

TEST(Picture, ASizeIsReadFromTheHeader) {
  TempFolder folder;
  const auto pixels = SmoothPixels(7, 11, 3);
  EXPECT_EQ(ReadPictureSize(folder.Write("a.png", PngOf(pixels, 7, 11, PNG_FORMAT_RGB))),
            (PictureSize{7, 11}));
  EXPECT_EQ(ReadPictureSize(folder.Write("b", JpegOf(pixels, 7, 11, 3))), (PictureSize{7, 11}));
}

TEST(Picture, OneThatEndsEarlyIsRefused) {
  const auto pixels = NoisyPixels(32, 32, 3);
  for (const std::string& file :
       {PngOf(pixels, 32, 32, PNG_FORMAT_RGB), JpegOf(pixels, 32, 32, 3)}) {
    for (const double share : {0.0, 0.001, 0.01, 0.1, 0.5, 0.9}) {
      const auto bytes = static_cast<size_t>(share * static_cast<double>(file.size()));
      EXPECT_THAT(MessageOf<DataError>([&] {
                    Decoded(file.substr(0, bytes), {3, 32, 32});
                  }),
                  HasSubstr("a picture: "))
          << share;
    }
  }
}

TEST(Picture, AnotherSizeIsRefusedWhereNoneIsGiven) {
  const std::string file = PngOf(NoisyPixels(4, 5, 1), 4, 5, PNG_FORMAT_GRAY);
  EXPECT_EQ(MessageOf<DataError>([&] {
              Decoded(file, {1, 5, 4});
            }),
            "a picture: a picture of 4 x 5 pixels among those of 5 x 4 | give all of them one "
            "size: data.size with data.fit stretch or crop");
}

TEST(Picture, AHeaderOfAHugePictureIsRefusedBeforeMemoryIsTaken) {
  std::string file = PngOf(NoisyPixels(4, 4, 1), 4, 4, PNG_FORMAT_GRAY);
  EXPECT_THAT(MessageOf<DataError>([&] {
                // IHDR's width, whose checksum is wrong then, too.
                file[16] = 0x0f;
                Decoded(file, {1, 4, 4}, Fit::kStretch);
              }),
              HasSubstr("a picture: "));
}

TEST(Picture, IsToldByItsName) {
  for (const char* name : {"a.png", "b.PNG", "c.jpg", "d.JPEG"}) EXPECT_TRUE(IsPictureName(name));
  for (const char* name : {"png", "a.gif", "b.png.txt", ""}) EXPECT_FALSE(IsPictureName(name));
}

}  // namespace
}  // namespace dtrain
