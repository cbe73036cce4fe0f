// 16-bit floats: values are rounded to them before they are sent, and converted back.
//
//   fp16  5 bits of exponent, 10 of fraction: 2^-24 (below 2^-14 with fewer digits) to 65504
//   bf16  8 bits of exponent, 7 of fraction: the range of fp32
//
// Rounding is to nearest, ties to even.  A finite value beyond the largest one becomes the largest one, never infinity.
// NaN and infinity are kept.
//
// The rounding error x - Rounded(x) is a float again, and nothing is lost: Rounded(x) + (x - Rounded(x)) is x to the
// bit (but for the sign of a zero), for every bf16, and for fp16 below 2^29 (a sum of two floats, where x is larger,
// may round).  Therefore bf16 rounds magnitudes below 2^-103 to 0: their error could be denormal, and threads that
// flush denormals would lose it.
#pragma once

#include <cstdint>

namespace dtrain {

// Wire is the number format of sent values.
enum class Wire : uint8_t { kFp32, kFp16, kBf16 };

constexpr int64_t BytesOf(Wire wire) { return wire == Wire::kFp32 ? 4 : 2; }

// `wire` must be a 16-bit format in all functions below.
float Rounded(Wire wire, float value);

// Sets to[i] = Rounded(values[i]), then values[i] -= to[i].
void SplitRounded(Wire wire, float* to, float* values, int64_t n);

// Encode rounds to 16 bits; Decode converts back.
void Encode(Wire wire, uint16_t* to, const float* values, int64_t n);
void Decode(Wire wire, float* to, const uint16_t* values, int64_t n);
// Also rounds `values` in place, and adds the errors to `errors` (a rank keeps the sum of its rounding errors).
void EncodeRounding(Wire wire, uint16_t* to, float* values, float* errors, int64_t n);

// Returns the second half of the memory of n floats: n 16-bit values stored there can be converted by DecodeInPlace.
inline uint16_t* InPlace(float* memory, int64_t n) {
  return reinterpret_cast<uint16_t*>(memory) + n;
}
void DecodeInPlace(Wire wire, float* memory, int64_t n);

}  // namespace dtrain
