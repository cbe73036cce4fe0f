#include "framework/kernels/cpu/reorder.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtrain {
namespace {

// Returns the offset of element (n, c, row, column) by the definition of the formats in tensor.h.
int64_t PlaceOf(const Shape& s, Format format, int64_t n, int64_t c, int64_t pixel) {
  const int64_t pixels = s[2] * s[3];
  switch (format) {
    case Format::kPlain:
      return (n * s[1] + c) * pixels + pixel;
    case Format::kChannelsLast:
      return (n * pixels + pixel) * s[1] + c;
    case Format::kBatchBlocked:
      return ((n / 16 * s[1] + c) * pixels + pixel) * 16 + n % 16;
  }
  return -1;
}

struct Image {
  Image(const Shape& shape, Format format, float value)
      : values(StoredCount(shape, format), value), tensor{values.data(), shape} {
    tensor.format = format;
  }
  std::vector<float> values;
  Tensor tensor;
};

class ReorderTest : public testing::TestWithParam<std::tuple<Format, Format, int>> {};

TEST_P(ReorderTest, MovesEveryElement) {
  const auto [from_format, to_format, batch] = GetParam();
  const Shape shape{batch, 3, 5, 7};
  Image from(shape, from_format, -1), to(shape, to_format, -1);
  const auto number = [&](int64_t n, int64_t c, int64_t p) {
    return static_cast<float>((n * 3 + c) * 35 + p + 1);
  };
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < 105; ++i) {
      from.values[PlaceOf(shape, from_format, n, i / 35, i % 35)] = number(n, i / 35, i % 35);
    }
  }
  Reorder(from.tensor, to.tensor, Device{DeviceKind::kCpu, 2, CpuIsa()});
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < 105; ++i) {
      EXPECT_EQ(to.values[PlaceOf(shape, to_format, n, i / 35, i % 35)], number(n, i / 35, i % 35));
    }
  }
}

constexpr Format kAll[] = {Format::kPlain, Format::kChannelsLast, Format::kBatchBlocked};
INSTANTIATE_TEST_SUITE_P(Formats, ReorderTest,
                         testing::Combine(testing::ValuesIn(kAll), testing::ValuesIn(kAll),
                                          testing::Values(1, 16, 21)));

TEST(Reorder, LanesBeyondTheBatchBecomeZero) {
  const Shape shape{18, 2, 3, 3};
  for (const Format format : {Format::kPlain, Format::kChannelsLast}) {
    Image from(shape, format, 7), to(shape, Format::kBatchBlocked, -1);
    Reorder(from.tensor, to.tensor, Device{});
    for (int64_t i = 0; i < 32 * 18; ++i) {
      const bool sample = i / 16 < 18 || i % 16 < 2;
      EXPECT_EQ(to.values[i], sample ? 7 : 0) << i;
    }
  }
}

TEST(Reorder, TakesVectorsBetweenPlainAndBlocked) {
  const Shape shape{17, 5};
  Image from(shape, Format::kPlain, 0), blocked(shape, Format::kBatchBlocked, -1);
  Image back(shape, Format::kPlain, -1);
  for (size_t i = 0; i < from.values.size(); ++i) from.values[i] = static_cast<float>(i);
  Reorder(from.tensor, blocked.tensor, Device{});
  EXPECT_EQ(blocked.values[3 * 16 + 2], 2 * 5 + 3);
  Reorder(blocked.tensor, back.tensor, Device{});
  EXPECT_EQ(back.values, from.values);
}

TEST(ReorderDeathTest, ShapesMustAgree) {
  Image from({2, 1, 2, 2}, Format::kPlain, 0), to({1, 2, 2, 2}, Format::kPlain, 0);
  EXPECT_DEATH(Reorder(from.tensor, to.tensor, Device{}), "\\[2, 1, 2, 2\\] to \\[1, 2, 2, 2\\]");
}

}  // namespace
}  // namespace dtrain
