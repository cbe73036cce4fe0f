// The magnitude of a float as an integer with the same order: |a| < |b| is Magnitude(a) < Magnitude(b).  Infinity is
// above all numbers, NaN above infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrain {

constexpr uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

constexpr float OfMagnitude(uint32_t magnitude) { return std::bit_cast<float>(magnitude); }

}  // namespace dtrain
