// One sample of the `digits` set: a digit drawn as strokes, bent, moved and blotched at random.
//
// A pure function of (seed, split, index): counted random numbers (Purpose::kDigits, a = split, b =
// index) and nothing else, no function of the math library whose last bit may differ between
// machines.
#pragma once

#include <cstdint>

#include "framework/data/dataset.h"

namespace dtrain::digits {

inline constexpr int kSide = 28;
inline constexpr int kPixels = kSide * kSide;

// Draws the sample into pixels[kPixels], row-major, 0 paper to 255 ink, and returns its digit.
uint8_t Draw(uint64_t seed, Split split, int64_t index, uint8_t* pixels);

}  // namespace dtrain::digits
