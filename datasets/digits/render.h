// One sample of the `digits` set: a digit drawn as strokes, bent, moved and blotched at random.
//
// A pure function of (seed, split, index): counted random numbers (Purpose::kDigits, a = split, b =
// index) and nothing else, no function of the math library whose last bit may differ between
// machines.
#pragma once

#include <cstdint>
#include <span>

#include "framework/data/dataset.h"

namespace dtrain::digits {

inline constexpr int kSide = 28;
inline constexpr int kPixels = kSide * kSide;

// Draws the sample into pixels[kPixels], row-major, 0 paper to 255 ink, and returns its digit.
uint8_t Draw(uint64_t seed, Split split, int64_t index, uint8_t* pixels);

// How a hand draws the ten digits (glyphs.cc): strokes through a few points, in two or three styles
// each.
//
// A glyph lies in x [-0.35, 0.35], y [-0.5, 0.5], y downwards.  The pen goes through the points of
// a stroke on a smooth curve (Catmull-Rom), except at a corner, where it turns.
struct Point {
  float x;
  float y;
  bool corner = false;
};

using Stroke = std::span<const Point>;
using Glyph = std::span<const Stroke>;

// The styles of digit 0..9.
std::span<const Glyph> Styles(int digit);

}  // namespace dtrain::digits
