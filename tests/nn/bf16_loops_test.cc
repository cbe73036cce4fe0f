// Compares the bf16 convolution's packing with plain loops over the layouts that bf16_loops.h
// defines.  The emulated copy is tested on any machine; the AMX copy where the CPU has bf16
// conversions (packing needs no tiles).
#include "layers/convolution/bf16_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "framework/core/isa.h"
#include "framework/core/random.h"

namespace dtrain {
namespace {

std::vector<std::pair<std::string, const Bf16Loops*>> Copies() {
  std::vector<std::pair<std::string, const Bf16Loops*>> copies = {
      {"emulated", &isa_emulated::kBf16Loops}};
#if defined(__x86_64__)
  if (CpuIsa() == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16")) {
    copies.emplace_back("amx", &isa_amx::kBf16Loops);
  }
#endif
  return copies;
}

float OfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

double OfBf16(Bf16 value) {
  // For rounding, the next value after the largest finite number is the next power of two.
  if ((value & 0x7fff) == 0x7f80) return std::ldexp((value & 0x8000) != 0 ? -1 : 1, 128);
  return OfBits(static_cast<uint32_t>(value) << 16);
}

// Returns the nearest of the two neighbours; a tie goes to the even one.
Bf16 Nearest(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const auto below = static_cast<Bf16>(bits >> 16);
  const uint32_t exponent = bits >> 23 & 0xff;  // from bits: this thread may flush denormals
  if (exponent == 0) return below & 0x8000;     // a denormal counts as 0
  if (exponent == 0xff) return (bits & 0x7fffff) == 0 ? below : static_cast<Bf16>(below | 0x40);
  const auto above = static_cast<Bf16>(below + 1);
  const double to_below = std::abs(OfBf16(below) - value),
               to_above = std::abs(OfBf16(above) - value);
  if (to_below == to_above) return below % 2 == 0 ? below : above;
  return to_below < to_above ? below : above;
}

// Random bits give numbers of all magnitudes, infinities and NaN among them.
std::vector<float> Numbers(int64_t count) {
  const Random random(4, Purpose::kSelfTest);
  std::vector<float> numbers = {0.0f,
                                -0.0f,
                                1.0f,
                                OfBits(0x3f808000),
                                OfBits(0x3f818000),
                                OfBits(0x3f808001),
                                OfBits(0x7f7fffff),
                                OfBits(0xff7f8000),
                                OfBits(0x7f800000),
                                OfBits(0xff800000),
                                OfBits(0x7fc00001),
                                OfBits(0x7f800001),
                                OfBits(0x00000001),
                                OfBits(0x807fffff),
                                OfBits(0x00800000)};
  while (static_cast<int64_t>(numbers.size()) < count) {
    numbers.push_back(OfBits(random.Bits(numbers.size())));
  }
  return numbers;
}

constexpr int64_t kChannels = 64;
constexpr Bf16 kUntouched = 0x1234;

TEST(Bf16Packing, RoundsToTheNearestAndKeepsImagesInRows) {
  const Bf16Pixels from = {.images = 5,
                           .image_floats = 7 * kChannels,
                           .pixels = 6,
                           .pixel_floats = kChannels,
                           .channels = kChannels};
  const std::vector<float> x = Numbers((from.images + 1) * from.image_floats);  // one too many
  std::vector<Bf16> wanted(static_cast<size_t>(from.pixels * 2 * kBf16Square), kUntouched);
  for (int64_t i = 0; i < from.images; ++i) {
    for (int64_t p = 0; p < from.pixels; ++p) {
      for (int64_t c = 0; c < kChannels; ++c) {
        wanted[(p * 2 + c / 32) * kBf16Square + i * 32 + c % 32] =
            Nearest(x[i * from.image_floats + p * kChannels + c]);
      }
    }
  }
  for (const auto& [name, loops] : Copies()) {
    std::vector<Bf16> packed(wanted.size(), kUntouched);
    loops->pack_rows(from, x.data(), packed.data());
    EXPECT_EQ(packed, wanted) << name;
  }
}

TEST(Bf16Packing, PutsImagesSideBySideForSumsOverThem) {
  const Bf16Pixels from = {.images = 5,
                           .image_floats = 4 * kChannels,
                           .pixels = 3,
                           .pixel_floats = kChannels,
                           .channels = kChannels};
  const int64_t pairs = 3, block = from.pixels * kBf16Square;
  const std::vector<float> x = Numbers((from.images + 1) * from.image_floats);  // one too many
  std::vector<Bf16> in_pairs(static_cast<size_t>(2 * block), kUntouched), turned = in_pairs;
  for (int64_t p = 0; p < from.pixels; ++p) {
    for (int64_t c = 0; c < kChannels; ++c) {
      for (int64_t i = 0; i < 32; ++i) {
        const Bf16 value =
            i < from.images ? Nearest(x[i * from.image_floats + p * kChannels + c]) : 0;
        const int64_t tile = c / 32 * block + p * kBf16Square + c % 32 / 16 * 512;
        turned[tile + c % 16 * 32 + i] = value;
        if (i < 2 * pairs) in_pairs[tile + i / 2 * 32 + c % 16 * 2 + i % 2] = value;
      }
    }
  }
  for (const auto& [name, loops] : Copies()) {
    std::vector<Bf16> packed(in_pairs.size(), kUntouched);
    loops->pack_pairs(from, x.data(), pairs, block, packed.data());
    EXPECT_EQ(packed, in_pairs) << name;
    packed.assign(turned.size(), kUntouched);
    loops->pack_turned(from, x.data(), pairs, block, packed.data());
    EXPECT_EQ(packed, turned) << name;
  }
}

// 25 taps make one vector of sixteen and a remainder of nine.
TEST(Bf16Packing, OrdersWeightsByTap) {
  constexpr int64_t kTaps = 25, kOutputs = 64;
  const Bf16WeightBlock block = {
      .channels = kChannels, .taps = kTaps, .first_output = 32, .first_channel = 32};
  const std::vector<float> w = Numbers(kOutputs * kChannels * kTaps);
  std::vector<int32_t> place(kTaps);
  for (int64_t t = 0; t < kTaps; ++t) place[t] = static_cast<int32_t>(t * 7 % kTaps);
  for (const bool turned : {false, true}) {
    std::vector<Bf16> wanted(static_cast<size_t>(kTaps * kBf16Square));
    for (int64_t t = 0; t < kTaps; ++t) {
      for (int64_t o = 0; o < 32; ++o) {
        for (int64_t c = 0; c < 32; ++c) {
          const int64_t row = turned ? o : c, column = turned ? c : o;
          wanted[place[t] * kBf16Square + column / 16 * 512 + row / 2 * 32 + column % 16 * 2 +
                 row % 2] = Nearest(w[((32 + o) * kChannels + 32 + c) * kTaps + t]);
        }
      }
    }
    for (const auto& [name, loops] : Copies()) {
      std::vector<Bf16> packed(wanted.size(), kUntouched);
      loops->pack_weights(block, turned, w.data(), place.data(), kBf16Square, packed.data());
      EXPECT_EQ(packed, wanted) << name << (turned ? ", turned" : "");
    }
  }
}

TEST(Bf16Packing, GivesGradientsBackInPlainOrder) {
  constexpr int64_t kTaps = 25, kOutputs = 64;
  const Bf16WeightBlock block = {
      .channels = kChannels, .taps = kTaps, .first_output = 0, .first_channel = 32};
  std::vector<float> sums(static_cast<size_t>(kTaps * kBf16Square));
  std::iota(sums.begin(), sums.end(), 1.0f);
  for (const bool accumulate : {false, true}) {
    const std::vector<float> before(static_cast<size_t>(kOutputs * kChannels * kTaps), 0.5f);
    std::vector<float> wanted = before;
    for (int64_t t = 0; t < kTaps; ++t) {
      for (int64_t o = 0; o < 32; ++o) {
        for (int64_t c = 0; c < 32; ++c) {
          const int64_t tile = (t * 2 + o / 16) * 2 + c / 16;
          wanted[(o * kChannels + 32 + c) * kTaps + t] =
              sums[tile * 256 + o % 16 * 16 + c % 16] + (accumulate ? 0.5f : 0.0f);
        }
      }
    }
    for (const auto& [name, loops] : Copies()) {
      std::vector<float> dw = before;
      loops->weight_gradient(block, sums.data(), accumulate, dw.data());
      EXPECT_EQ(dw, wanted) << name;
    }
  }
}

}  // namespace
}  // namespace dtrain
