// How a hand draws the ten digits: strokes through a few points, in two or three styles each.
//
// A glyph lies in x [-0.35, 0.35], y [-0.5, 0.5], y downwards.  The pen goes through the points of
// a stroke on a smooth curve (Catmull-Rom), except at a corner, where it turns.
#pragma once

#include <span>

namespace dtrain::digits {

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
