// Compares the 16-bit floats with their definition: rounding gives the nearest value of the format.
#include "framework/core/short_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/core/random.h"

namespace dtrain {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Format {
  Wire wire;
  int exponent_bits, fraction_bits;
};

// Returns the value of a finite code in double precision, by the definition of the format.
double ValueOf(const Format& format, uint32_t code) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t fraction = code & ((1U << format.fraction_bits) - 1);
  const int exponent =
      static_cast<int>(code >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const double digits = std::ldexp(fraction, -format.fraction_bits) + (exponent == 0 ? 0 : 1);
  const double magnitude = std::ldexp(digits, std::max(exponent, 1) - bias);
  return (code >> 15) != 0 ? -magnitude : magnitude;
}

uint32_t FirstNotFinite(const Format& format) {
  return ((1U << format.exponent_bits) - 1) << format.fraction_bits;
}

uint16_t CodeOf(Wire wire, float value) {
  uint16_t code = 0;
  Encode(wire, &code, &value, 1);
  return code;
}

float ValueOf(Wire wire, uint16_t code) {
  float value = 0;
  Decode(wire, &value, &code, 1);
  return value;
}

// Searches all finite codes for the nearest value; a tie goes to the even code.  Never returns
// infinity.
double NearestTo(const Format& format, double value) {
  const uint32_t end = FirstNotFinite(format);
  uint32_t low = 0, high = end;  // the first code above |value| is after low
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (ValueOf(format, middle) <= std::abs(value) ? low : high) = middle;
  }
  double nearest = ValueOf(format, low);
  if (high < end) {
    const double below = std::abs(value) - nearest, above = ValueOf(format, high) - std::abs(value);
    if (above < below || (above == below && low % 2 == 1)) nearest = ValueOf(format, high);
  }
  return std::copysign(nearest, value);
}

class ShortFloatTest : public testing::TestWithParam<Format> {};

TEST_P(ShortFloatTest, EveryCodeComesBack) {
  const Wire wire = GetParam().wire;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float value = ValueOf(wire, static_cast<uint16_t>(code));
    const uint32_t magnitude = code & 0x7fffU;
    if (magnitude > FirstNotFinite(GetParam())) {
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_TRUE(std::isnan(Rounded(wire, value))) << code;
    } else if (magnitude == FirstNotFinite(GetParam())) {
      ASSERT_EQ(value, (code >> 15) != 0 ? -kInfinity : kInfinity);
      ASSERT_EQ(CodeOf(wire, value), code);
    } else {
      ASSERT_EQ(value, ValueOf(GetParam(), code)) << code;
      if (wire == Wire::kBf16 && std::abs(value) < 0x1p-103F) continue;
      ASSERT_EQ(CodeOf(wire, value), code);
    }
  }
}

// Returns values around each code and each half-way point, and random ones of all magnitudes.
std::vector<float> Samples(const Format& format) {
  std::vector<float> samples;
  for (uint32_t code = 0; code < FirstNotFinite(format); code += 7) {
    const double value = ValueOf(format, code), next = ValueOf(format, code + 1);
    const auto middle = static_cast<float>((value + next) / 2);
    for (const float at : {static_cast<float>(value), middle}) {
      for (const float x : {std::nextafter(at, 0.0F), at, std::nextafter(at, kInfinity)}) {
        samples.push_back(code % 2 == 0 ? x : -x);
      }
    }
  }
  const Random random(3, Purpose::kSelfTest);
  for (uint64_t i = 0; i < 50'000; ++i) {
    const float value = random.Normal(i);
    samples.push_back(std::ldexp(value, static_cast<int>(i % 250) - 125));
  }
  samples.insert(samples.end(), {65519.0F, 65520.0F, -65520.0F, 1e9F, 0.0F,
                                 std::numeric_limits<float>::max(), 0x1p-103F, -0x1.fffffep-104F});
  std::erase_if(samples, [](float x) { return std::isinf(x); });
  return samples;
}

TEST_P(ShortFloatTest, RoundsToTheNearestAndToEven) {
  for (const float value : Samples(GetParam())) {
    const bool tiny = GetParam().wire == Wire::kBf16 && std::abs(value) < 0x1p-103F;
    const double expected = tiny ? 0 : NearestTo(GetParam(), static_cast<double>(value));
    ASSERT_EQ(static_cast<double>(Rounded(GetParam().wire, value)), expected) << value;
  }
}

TEST_P(ShortFloatTest, WhatIsSentAndWhatIsKeptIsAllThatWasThere) {
  const std::vector<float> all = Samples(GetParam());
  std::vector<float> sent(all.size()), kept = all;
  SplitRounded(GetParam().wire, sent.data(), kept.data(), std::ssize(all));
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(sent[i], Rounded(GetParam().wire, all[i]));
    if (GetParam().wire == Wire::kFp16 && std::abs(all[i]) >= 0x1p29F) continue;
    ASSERT_EQ(sent[i] + kept[i], all[i]);
    // The split is exact also in double: the rounding error is itself a float.
    ASSERT_EQ(static_cast<double>(sent[i]) + static_cast<double>(kept[i]),
              static_cast<double>(all[i]));
    ASSERT_TRUE(kept[i] == 0 || std::abs(all[i]) < 0x1p-126F || std::isnormal(kept[i])) << all[i];
  }
}

TEST_P(ShortFloatTest, NaNAndInfinityStay) {
  const Wire wire = GetParam().wire;
  EXPECT_TRUE(std::isnan(Rounded(wire, std::nanf(""))));
  EXPECT_TRUE(std::isnan(Rounded(wire, std::bit_cast<float>(0x7f800001U))));
  EXPECT_EQ(Rounded(wire, kInfinity), kInfinity);
  EXPECT_EQ(Rounded(wire, -kInfinity), -kInfinity);
}

TEST_P(ShortFloatTest, LoopsInPlaceAreThoseBesideIt) {
  const Wire wire = GetParam().wire;
  for (const int64_t n : {1, 2, 255, 256, 257, 5000}) {
    const Random random(5, Purpose::kSelfTest, static_cast<uint64_t>(n));
    std::vector<float> values, errors(static_cast<size_t>(n), 0.25F);
    for (int64_t i = 0; i < n; ++i) values.push_back(random.Normal(static_cast<uint64_t>(i)));
    std::vector<float> rounded = values, memory(values.size());
    std::vector<uint16_t> codes(values.size());
    EncodeRounding(wire, codes.data(), rounded.data(), errors.data(), n);
    std::copy(codes.begin(), codes.end(), InPlace(memory.data(), n));
    DecodeInPlace(wire, memory.data(), n);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded[i], Rounded(wire, values[i]));
      ASSERT_EQ(errors[i], 0.25F + (values[i] - rounded[i]));
      ASSERT_EQ(memory[i], rounded[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ShortFloatTest,
                         testing::Values(Format{Wire::kFp16, 5, 10}, Format{Wire::kBf16, 8, 7}),
                         [](const auto& info) {
                           return info.param.wire == Wire::kFp16 ? "fp16" : "bf16";
                         });

}  // namespace
}  // namespace dtrain
