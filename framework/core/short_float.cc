#include "framework/core/short_float.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "framework/core/check.h"

namespace dtrain {
namespace {

constexpr uint32_t kSign = 0x80000000U;
constexpr uint32_t kInfinity = 0x7f800000U;

// Each format converts magnitudes in both directions; the caller restores the sign.
struct Fp16 {
  static constexpr uint32_t kLargest = 0x7bff;
  static constexpr uint32_t kOverflow = 0x477ff000U;  // 65520, half-way to 65536
  static constexpr uint32_t kNormal = 0x38800000U;    // 2^-14
  static constexpr uint32_t kBias = (127U - 15U) << 23;

  // Below 2^-14, fp16 numbers are multiples of 2^-24, which is the last place of a float in [0.5, 1): adding 0.5
  // rounds.
  static uint32_t Encode(uint32_t bits) {
    const uint32_t normal = (bits - kBias + 0xfffU + ((bits >> 13) & 1U)) >> 13;
    const float shifted = std::bit_cast<float>(bits) + 0.5F;
    const uint32_t small = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F);
    const uint32_t finite = bits >= kOverflow ? kLargest : bits < kNormal ? small : normal;
    return bits > kInfinity ? 0x7e00U : bits == kInfinity ? 0x7c00U : finite;
  }
  static uint32_t Decode(uint32_t half) {
    const uint32_t normal = (half << 13) + kBias;
    const float small = static_cast<float>(static_cast<int32_t>(half)) * 0x1p-24F;
    const uint32_t finite = half < 0x400U ? std::bit_cast<uint32_t>(small) : normal;
    return half >= 0x7c00U ? kInfinity | ((half & 0x3ffU) << 13) : finite;
  }
};

struct Bf16 {
  static constexpr uint32_t kLargest = 0x7f7f;
  static constexpr uint32_t kOverflow = 0x7f7f8000U;          // half-way to infinity
  static constexpr uint32_t kSmallest = (127U - 103U) << 23;  // 2^-103

  static uint32_t Encode(uint32_t bits) {
    const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const uint32_t finite = bits >= kOverflow ? kLargest : bits < kSmallest ? 0U : rounded;
    return bits > kInfinity ? 0x7fc0U : bits == kInfinity ? 0x7f80U : finite;
  }
  static uint32_t Decode(uint32_t half) { return half << 16; }
};

template <class Format>
uint16_t EncodeOne(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>(Format::Encode(bits & ~kSign) | ((bits & kSign) >> 16));
}

template <class Format>
float DecodeOne(uint16_t half) {
  const uint32_t word = half;
  return std::bit_cast<float>(Format::Decode(word & 0x7fffU) | ((word & 0x8000U) << 16));
}

// Calls work() with an object of the format's class.
template <class Work>
void With(Wire wire, const Work& work) {
  DT_CHECK(wire != Wire::kFp32) << "not of 16 bits";
  if (wire == Wire::kFp16) return work(Fp16());
  work(Bf16());
}

}  // namespace

float Rounded(Wire wire, float value) {
  float rounded = 0;
  With(wire, [&]<class Format>(Format) { rounded = DecodeOne<Format>(EncodeOne<Format>(value)); });
  return rounded;
}

void SplitRounded(Wire wire, float* to, float* values, int64_t n) {
  With(wire, [&]<class Format>(Format) {
    for (int64_t i = 0; i < n; ++i) {
      to[i] = DecodeOne<Format>(EncodeOne<Format>(values[i]));
      values[i] -= to[i];
    }
  });
}

void Encode(Wire wire, uint16_t* to, const float* values, int64_t n) {
  With(wire, [&]<class Format>(Format) {
    for (int64_t i = 0; i < n; ++i) to[i] = EncodeOne<Format>(values[i]);
  });
}

void Decode(Wire wire, float* to, const uint16_t* values, int64_t n) {
  With(wire, [&]<class Format>(Format) {
    for (int64_t i = 0; i < n; ++i) to[i] = DecodeOne<Format>(values[i]);
  });
}

void EncodeRounding(Wire wire, uint16_t* to, float* values, float* errors, int64_t n) {
  With(wire, [&]<class Format>(Format) {
    for (int64_t i = 0; i < n; ++i) {
      to[i] = EncodeOne<Format>(values[i]);
      const float rounded = DecodeOne<Format>(to[i]);
      errors[i] += values[i] - rounded;
      values[i] = rounded;
    }
  });
}

// Float i ends at or before the 16-bit value i + 1, so an ascending loop overwrites no value that is still to be read.
// Blocks are copied first, so that the loop can be vectorised.
void DecodeInPlace(Wire wire, float* memory, int64_t n) {
  constexpr int64_t kBlock = 256;
  std::array<uint16_t, kBlock> block;
  const uint16_t* const values = InPlace(memory, n);
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    std::memcpy(block.data(), values + i, static_cast<size_t>(count) * sizeof(uint16_t));
    Decode(wire, memory + i, block.data(), count);
  }
}

}  // namespace dtrain
