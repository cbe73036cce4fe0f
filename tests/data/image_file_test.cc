// Tests JPEG and PNG decoding: pixels, sizes and damaged files.
#include "framework/data/images/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/core/error.h"
#include "tests/data/image_files.h"
#include "tests/data/temp_folder.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Decoded(const std::string& file, const Shape& shape, Fit fit = Fit::kNone,
                             Orientation orientation = Orientation::kExif) {
  std::vector<uint8_t> image(static_cast<size_t>(shape.count()));
  DecodeImage(file, "an image", shape, fit, orientation, image.data());
  return image;
}

// Converts [rows][columns][channels] to [channels][rows][columns].
std::vector<uint8_t> ByChannel(const std::vector<uint8_t>& pixels, int64_t channels) {
  std::vector<uint8_t> planes;
  for (int64_t c = 0; c < channels; ++c) {
    for (size_t i = static_cast<size_t>(c); i < pixels.size(); i += static_cast<size_t>(channels)) {
      planes.push_back(pixels[i]);
    }
  }
  return planes;
}

TEST(Image, APngIsItsPixels) {
  const auto colours = NoisyPixels(9, 13, 3);
  EXPECT_EQ(Decoded(PngOf(colours, 9, 13, PNG_FORMAT_RGB), {3, 9, 13}), ByChannel(colours, 3));
  const auto grey = NoisyPixels(9, 13, 1);
  EXPECT_EQ(Decoded(PngOf(grey, 9, 13, PNG_FORMAT_GRAY), {1, 9, 13}), grey);
}

TEST(Image, GreyBecomesThreeEqualChannelsAndColoursTheirBrightness) {
  const auto grey = NoisyPixels(5, 4, 1);
  std::vector<uint8_t> thrice;
  for (int c = 0; c < 3; ++c) thrice.insert(thrice.end(), grey.begin(), grey.end());
  EXPECT_EQ(Decoded(PngOf(grey, 5, 4, PNG_FORMAT_GRAY), {3, 5, 4}), thrice);
  const std::vector<uint8_t> black_white = {0, 0, 0, 255, 255, 255};
  EXPECT_EQ(Decoded(PngOf(black_white, 1, 2, PNG_FORMAT_RGB), {1, 1, 2}),
            (std::vector<uint8_t>{0, 255}));
}

// Grey is .299 red + .587 green + .114 blue of the stored values, without gamma.
TEST(Image, GreyIsThatOfTheStoredValuesInEveryFormat) {
  const std::vector<uint8_t> colours = {255, 0, 0, 0, 255, 0, 0, 0, 255, 200, 100, 50};
  EXPECT_EQ(Decoded(PngOf(colours, 1, 4, PNG_FORMAT_RGB), {1, 1, 4}),
            (std::vector<uint8_t>{76, 150, 29, 124}));
  std::vector<uint8_t> red;
  for (int i = 0; i < 64; ++i) red.insert(red.end(), {200, 0, 0});
  for (const uint8_t pixel : Decoded(JpegOf(red, 8, 8, 3), {1, 8, 8})) EXPECT_NEAR(pixel, 60, 1);
  // A JPEG cannot hold such noise: the decoded RGB values are clipped, so its stored brightness
  // differs from theirs.  Grey must come from the RGB values.
  const std::string noise = JpegOf(NoisyPixels(32, 32, 3), 32, 32, 3);
  const auto rgb = Decoded(noise, {3, 32, 32});
  const auto grey = Decoded(noise, {1, 32, 32});
  for (size_t i = 0; i < grey.size(); ++i) {
    ASSERT_EQ(grey[i],
              (19595 * rgb[i] + 38470 * rgb[i + 1024] + 7471 * rgb[i + 2048] + 32768) >> 16);
  }
}

TEST(Image, SixteenBitsAreDividedBy257WhateverTheirGamma) {
  // libpng writes these with a gAMA chunk of 1.
  const std::vector<uint16_t> deep = {0, 128, 129, 0x8080, 0x8000, 0xbebe, 65535};
  const auto* bytes = reinterpret_cast<const uint8_t*>(deep.data());
  const std::string file = PngOf({bytes, bytes + 14}, 1, 7, PNG_FORMAT_LINEAR_Y);
  ASSERT_NE(file.find("gAMA"), std::string::npos);
  EXPECT_EQ(Decoded(file, {1, 1, 7}), (std::vector<uint8_t>{0, 0, 1, 128, 128, 190, 255}));
}

TEST(Image, WhatIsTransparentIsWhite) {
  const std::vector<uint8_t> pixels = {10, 20, 30, 255, 10, 20, 30, 0};
  EXPECT_EQ(Decoded(PngOf(pixels, 1, 2, PNG_FORMAT_RGBA), {3, 1, 2}),
            (std::vector<uint8_t>{10, 255, 20, 255, 30, 255}));
  const std::vector<uint8_t> half = {255, 0, 0, 128, 0, 0, 0, 64};
  EXPECT_EQ(Decoded(PngOf(half, 1, 2, PNG_FORMAT_RGBA), {3, 1, 2}),
            (std::vector<uint8_t>{255, 191, 127, 191, 127, 191}));
  EXPECT_EQ(Decoded(PngOf(half, 1, 2, PNG_FORMAT_RGBA), {1, 1, 2}),
            (std::vector<uint8_t>{165, 191}));
}

TEST(Image, AJpegIsNearItsPixels) {
  for (const int64_t channels : {1, 3}) {
    const auto pixels = SmoothPixels(40, 56, channels);
    const auto decoded = Decoded(JpegOf(pixels, 40, 56, channels), {channels, 40, 56});
    const auto expected = ByChannel(pixels, channels);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(decoded[i], expected[i], 6) << i;
  }
}

// Applies the triangle filter in double precision; its half-width is one pixel of the coarser
// image.
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

TEST(Image, ChangesItsSizeByATriangleFilter) {
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

// A wide image loses its left and right ends, a tall one its top and bottom.
TEST(Image, CropCutsWhatSticksOut) {
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

// Decoded at half size, the last of 19 rows covers only half a row, so the weights of the rows are
// uneven.
TEST(Image, ASmallJpegThatShrinksIsTheSameImage) {
  const auto pixels = SmoothPixels(19, 26, 3);
  const auto png = Decoded(PngOf(pixels, 19, 26, PNG_FORMAT_RGB), {3, 8, 8}, Fit::kCrop);
  const auto jpeg = Decoded(JpegOf(pixels, 19, 26, 3), {3, 8, 8}, Fit::kCrop);
  for (size_t i = 0; i < png.size(); ++i) ASSERT_NEAR(jpeg[i], png[i], 8) << i;
}

// A large JPEG is decoded at a reduced scale such as 1/8 first; the result is the same image.
TEST(Image, ALargeJpegThatShrinksIsTheSameImage) {
  const auto pixels = SmoothPixels(400, 300, 3);
  const auto png = Decoded(PngOf(pixels, 400, 300, PNG_FORMAT_RGB), {3, 30, 30}, Fit::kCrop);
  const auto jpeg = Decoded(JpegOf(pixels, 400, 300, 3), {3, 30, 30}, Fit::kCrop);
  for (size_t i = 0; i < png.size(); ++i) ASSERT_NEAR(jpeg[i], png[i], 8) << i;
}

// Returns the stored row and column of pixel (y, x) of the upright image for an EXIF orientation.
std::pair<int64_t, int64_t> StoredPlace(int orientation, int64_t y, int64_t x, int64_t rows,
                                        int64_t columns) {
  const int64_t last_row = rows - 1, last_column = columns - 1;
  switch (orientation) {
    case 2:
      return {y, last_column - x};
    case 3:
      return {last_row - y, last_column - x};
    case 4:
      return {last_row - y, x};
    case 5:
      return {x, y};
    case 6:
      return {last_row - x, y};
    case 7:
      return {last_row - x, last_column - y};
    case 8:
      return {x, last_column - y};
    default:
      return {y, x};
  }
}

// Checks the shape of the upright image, and that its pixels differ by at most `tolerance` from the
// stored ones in their places.
void ExpectTurned(const std::string& jpeg, int orientation, const Shape& stored, int tolerance) {
  SCOPED_TRACE(testing::Message() << orientation << " to " << stored.ToString());
  Shape upright = stored;
  if (orientation >= 5) std::swap(upright[1], upright[2]);
  const std::string file = WithExif(jpeg, orientation);
  const auto turned = Decoded(file, upright, Fit::kStretch);
  const auto as_stored = Decoded(file, stored, Fit::kStretch, Orientation::kIgnore);
  ASSERT_EQ(as_stored, Decoded(jpeg, stored, Fit::kStretch));
  size_t i = 0;
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < upright[1]; ++y) {
      for (int64_t x = 0; x < upright[2]; ++x, ++i) {
        const auto [row, column] = StoredPlace(orientation, y, x, stored[1], stored[2]);
        const int64_t at = (c * stored[1] + row) * stored[2] + column;
        ASSERT_NEAR(turned[i], as_stored[static_cast<size_t>(at)], tolerance) << y << ", " << x;
      }
    }
  }
}

// The image is decoded at full size and at 1/8.  At 1/8 the last row and column of 63 x 38 are only
// half covered, and turning the image moves them to another side.
TEST(Image, AnImageThatLiesOnItsSideIsTurnedBeforeItsSizeChanges) {
  const std::string jpeg = JpegOf(NoisyPixels(500, 300, 3), 500, 300, 3);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    ExpectTurned(jpeg, orientation, {3, 500, 300}, 0);
    ExpectTurned(jpeg, orientation, {3, 50, 30}, 1);
  }
}

TEST(Image, SaysWhetherItWasTurned) {
  const std::string jpeg = JpegOf(SmoothPixels(8, 8, 3), 8, 8, 3);
  std::vector<uint8_t> image(3 * 8 * 8);
  const auto turned = [&](const std::string& file, Orientation orientation) {
    return DecodeImage(file, "an image", {3, 8, 8}, Fit::kNone, orientation, image.data());
  };
  EXPECT_TRUE(turned(WithExif(jpeg, 3), Orientation::kExif));
  EXPECT_FALSE(turned(WithExif(jpeg, 3), Orientation::kIgnore));
  EXPECT_FALSE(turned(WithExif(jpeg, 1), Orientation::kExif));
  EXPECT_FALSE(turned(jpeg, Orientation::kExif));
}

TEST(Image, ASizeIsReadFromTheHeader) {
  TempFolder folder;
  const auto pixels = SmoothPixels(7, 11, 3);
  const auto size = [&](const std::string& file, Orientation orientation = Orientation::kExif) {
    return ReadImageSize(folder.Write("image", file), orientation);
  };
  EXPECT_EQ(size(PngOf(pixels, 7, 11, PNG_FORMAT_RGB)), (ImageSize{7, 11}));
  const std::string jpeg = JpegOf(pixels, 7, 11, 3);
  EXPECT_EQ(size(jpeg), (ImageSize{7, 11}));
  EXPECT_EQ(size(WithExif(jpeg, 4)), (ImageSize{7, 11}));
  EXPECT_EQ(size(WithExif(jpeg, 6)), (ImageSize{11, 7}));
  EXPECT_EQ(size(WithExif(jpeg, 6), Orientation::kIgnore), (ImageSize{7, 11}));
}

TEST(Image, OneThatEndsEarlyIsRefused) {
  const auto pixels = NoisyPixels(32, 32, 3);
  for (const std::string& file :
       {PngOf(pixels, 32, 32, PNG_FORMAT_RGB), JpegOf(pixels, 32, 32, 3)}) {
    for (const double share : {0.0, 0.001, 0.01, 0.1, 0.5, 0.9}) {
      const auto bytes = static_cast<size_t>(share * static_cast<double>(file.size()));
      EXPECT_THAT(MessageOf<DataError>([&] {
                    Decoded(file.substr(0, bytes), {3, 32, 32});
                  }),
                  HasSubstr("an image: "))
          << share;
    }
  }
}

TEST(Image, AnotherSizeIsRefusedWhereNoneIsGiven) {
  const std::string file = PngOf(NoisyPixels(4, 5, 1), 4, 5, PNG_FORMAT_GRAY);
  EXPECT_EQ(MessageOf<DataError>([&] {
              Decoded(file, {1, 5, 4});
            }),
            "an image: an image of 4 x 5 pixels among those of 5 x 4 | give all of them one "
            "size: data.size with data.fit stretch or crop");
}

TEST(Image, AHeaderOfAHugeImageIsRefusedBeforeMemoryIsTaken) {
  std::string file = PngOf(NoisyPixels(4, 4, 1), 4, 4, PNG_FORMAT_GRAY);
  EXPECT_THAT(MessageOf<DataError>([&] {
                // This changes IHDR's width, which makes its checksum wrong as well.
                file[16] = 0x0f;
                Decoded(file, {1, 4, 4}, Fit::kStretch);
              }),
              HasSubstr("an image: "));
}

TEST(Image, IsKnownByItsName) {
  for (const char* name : {"a.png", "b.PNG", "c.jpg", "d.JPEG"}) EXPECT_TRUE(IsImageName(name));
  for (const char* name : {"png", "a.gif", "b.png.txt", ""}) EXPECT_FALSE(IsImageName(name));
}

}  // namespace
}  // namespace dtrain
