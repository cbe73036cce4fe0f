// Floats of 16 bits: how values are rounded before they travel, and come back.
//
//   fp16  5 bits of exponent, 10 of fraction: 2^-24 (below 2^-14 with fewer digits) to 65504
//   bf16  8 bits of exponent, 7 of fraction: the range of fp32
//
// To nearest, ties to even.  A finite value never becomes infinite: beyond the largest one it becomes the
// largest one.  NaN and infinity stay what they are.
//
// What rounding leaves, x - Rounded(x), is a float again, and nothing is lost: Rounded(x) + (x -
// Rounded(x)) is x to the bit (but for the sign of a zero), for every bf16, and for fp16 below 2^29 (a
// sum of two floats, where x is larger, may round).
// Therefore bf16 takes what is below 2^-103 for 0: its error might be no normal number, which threads
// that flush denormals would lose.
#pragma once

#include <cstdint>

namespace dtrain {

// The form of values on their way.
enum class Wire : uint8_t { kFp32, kFp16, kBf16 };

constexpr int64_t BytesOf(Wire wire) { return wire == Wire::kFp32 ? 4 : 2; }

// `wire` is one of 16 bits in all that follow.
float Rounded(Wire wire, float value);

// to[i] = Rounded(values[i]), values[i] -= to[i].
void SplitRounded(Wire wire, float* to, float* values, int64_t n);

// As 16 bits, rounded; and back.
void Encode(Wire wire, uint16_t* to, const float* values, int64_t n);
void Decode(Wire wire, float* to, const uint16_t* values, int64_t n);
// The same with rounding of `values` in place, and the error added to `errors` (the sum of what a rank has
// rounded stays with it).
void EncodeRounding(Wire wire, uint16_t* to, float* values, float* errors, int64_t n);

// In the memory of n floats: where n values of 16 bits may lie so that DecodeInPlace can make floats of
// them, which is its second half.
inline uint16_t* InPlace(float* memory, int64_t n) {
  return reinterpret_cast<uint16_t*>(memory) + n;
}
void DecodeInPlace(Wire wire, float* memory, int64_t n);

}  // namespace dtrain
