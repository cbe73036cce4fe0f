// Renders a sample of the `digits` set: a digit drawn as strokes, with random distortion, position and noise.
//
// A sample is a pure function of (seed, split, index).  It uses counter-based random numbers (Purpose::kDigits, a =
// split, b = index), and no function of the math library whose last bit may differ between machines.
#pragma once

#include <cstdint>
#include <span>

#include "framework/data/dataset.h"

namespace dtrain::digits {

inline constexpr int kSide = 28;
inline constexpr int kPixels = kSide * kSide;

// Draws the sample into pixels[kPixels], row-major, from 0 (paper) to 255 (ink), and returns its digit.
uint8_t Draw(uint64_t seed, Split split, int64_t index, uint8_t* pixels);

// The shapes of the ten digits (glyphs.cc): each has two or three styles, whose strokes pass through a few points.
//
// A glyph is in x [-0.35, 0.35], y [-0.5, 0.5], with y downwards.  A stroke is a smooth curve (Catmull-Rom) through its
// points, except at a corner, where its direction changes.
struct Point {
  float x;
  float y;
  bool corner = false;
};

using Stroke = std::span<const Point>;
using Glyph = std::span<const Stroke>;

// Returns the styles of a digit from 0 to 9.
std::span<const Glyph> Styles(int digit);

}  // namespace dtrain::digits
