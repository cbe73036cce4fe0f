// Compares the vectorised passes with plain loops, under every instruction set of this CPU.
#include "framework/compress/scan.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "framework/compress/scan_selection.h"
#include "framework/core/magnitude.h"
#include "tests/compress/isas.h"
#include "tests/compress/values.h"

namespace dtrain {
namespace {

// Returns values of every magnitude and sign, with zeros, denormals, infinity and NaN among them.
std::vector<float> OddValues(int64_t n, uint64_t seed) {
  const Random random(seed, Purpose::kSelfTest);
  const float odd[] = {0.0f, -0.0f, 1e-42f, -INFINITY, INFINITY, NAN, 1.0f, -1.0f};
  return Values(n, [&](uint64_t i) {
    return random.Below(2 * i, 3) == 0 ? odd[random.Below(2 * i + 1, 8)]
                                       : std::bit_cast<float>(random.Bits(2 * i + 1));
  });
}

constexpr uint32_t kLeast[] = {1,           2,           0x3f800000u, 0x3f800001u,
                               0x7f800000u, 0x7fffffffu, 0x80000000u};

TEST(Scan, CountsAndTakesThoseThatReachTheThreshold) {
  for (const Isa isa : IsasHere()) {
    for (int64_t n = 0; n < 300; ++n) {
      const std::vector<float> values = OddValues(n, static_cast<uint64_t>(n));
      for (const uint32_t least : kLeast) {
        std::vector<int32_t> expected;
        for (int64_t i = 0; i < n; ++i) {
          if (Magnitude(values[i]) >= least) expected.push_back(static_cast<int32_t>(1000 + i));
        }
        SCOPED_TRACE(IsaName(isa) + ", n " + std::to_string(n));
        EXPECT_EQ(DTRAIN_ISA_SELECT(isa, CountReaching)(values.data(), n, least),
                  std::ssize(expected));
        // The outputs have no spare room, so that a sanitizer detects a write past their end.
        std::vector<int32_t> places(expected.size());
        std::vector<float> taken(expected.size());
        EXPECT_EQ(DTRAIN_ISA_SELECT(isa, TakeReaching)(values.data(), n, least, 1000, places.data(),
                                                       taken.data()),
                  std::ssize(expected));
        ASSERT_EQ(places, expected);
        for (size_t i = 0; i < places.size(); ++i) {
          ASSERT_EQ(std::bit_cast<uint32_t>(taken[i]),
                    std::bit_cast<uint32_t>(values[places[i] - 1000]));
        }
      }
    }
  }
}

TEST(Scan, CountsMoreThanFitABlock) {
  const std::vector<float> ones((1 << 20) + 77, 1.0f);
  for (const Isa isa : IsasHere()) {
    EXPECT_EQ(DTRAIN_ISA_SELECT(isa, CountReaching)(ones.data(), std::ssize(ones), 1),
              std::ssize(ones));
  }
}

TEST(Scan, SumsAreThoseOfDoubles) {
  const std::vector<float> values = NormalValues(10'001, 5);
  long double sum = 0, squares = 0, magnitudes = 0;
  float largest = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<long double>(value) * value;
    magnitudes += std::abs(value);
    largest = std::max(largest, std::abs(value));
  }
  for (const Isa isa : IsasHere()) {
    UnitMoments moments;
    DTRAIN_ISA_SELECT(isa, AddMoments)(values.data(), std::ssize(values), 0, moments);
    EXPECT_NEAR(SumOf(moments.sum), static_cast<double>(sum), 1e-10);
    EXPECT_NEAR(SumOf(moments.squares), static_cast<double>(squares), 1e-10);
    EXPECT_NEAR(SumOf(moments.magnitudes), static_cast<double>(magnitudes), 1e-10);
    EXPECT_EQ(moments.largest, Magnitude(largest));
  }
}

TEST(Scan, SumsHaveTheSameBitsInPartsOfAnySizeUnderEveryInstructionSet) {
  const std::vector<float> values = NormalValues(1003, 6);
  UnitMoments whole;
  isa_baseline::AddMoments(values.data(), std::ssize(values), 0, whole);
  for (const Isa isa : IsasHere()) {
    for (const int64_t size : {1, 5, 16, 37, 2000}) {
      UnitMoments moments;
      for (int64_t at = 0; at < std::ssize(values); at += size) {
        DTRAIN_ISA_SELECT(isa, AddMoments)
        (values.data() + at, std::min(size, std::ssize(values) - at), at, moments);
      }
      EXPECT_EQ(std::memcmp(&moments, &whole, offsetof(UnitMoments, largest)), 0)
          << IsaName(isa) << ", parts of " << size;
      EXPECT_EQ(moments.largest, whole.largest);
    }
  }
}

TEST(Scan, TheLeastMagnitudeAboveAThreshold) {
  EXPECT_EQ(LeastAbove(1.0), Magnitude(1.0f) + 1);
  EXPECT_EQ(LeastAbove(std::nextafter(1.0, 2.0)), Magnitude(1.0f) + 1);
  EXPECT_EQ(LeastAbove(std::nextafter(1.0, 0.0)), Magnitude(1.0f));
  EXPECT_EQ(LeastAbove(0), 1u);
  EXPECT_EQ(LeastAbove(1e-60), 1u);
  EXPECT_EQ(LeastAbove(-3), 1u);
  EXPECT_EQ(LeastAbove(NAN), 1u);
  EXPECT_EQ(LeastAbove(1e300), Magnitude(INFINITY));
  EXPECT_EQ(LeastAbove(INFINITY), Magnitude(INFINITY) + 1);
}

}  // namespace
}  // namespace dtrain
