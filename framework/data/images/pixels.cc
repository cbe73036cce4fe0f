#include "framework/data/images/pixels.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

UsedPart TurnedPart(UsedPart part, const Turn& turn) {
  const auto reverse = [](float& begin, float& end) { begin = 1 - std::exchange(end, 1 - begin); };
  if (turn.reverse_rows) reverse(part.top, part.bottom);
  if (turn.reverse_columns) reverse(part.left, part.right);
  return turn.exchange ? UsedPart{part.top, part.left, part.bottom, part.right} : part;
}

}  // namespace

Pixels BlankPixels(const ImageSize& size, int64_t channels) {
  Pixels pixels{size, size, channels};
  pixels.bytes.resize(static_cast<size_t>(size.rows * size.columns * channels));
  return pixels;
}

void CheckSize(const std::string& name, const ImageSize& size) {
  if (size.rows > 0 && size.columns > 0 && size.rows <= kPixelsMost / size.columns) return;
  throw DataError(fmt::format("{}: an image of {} x {} pixels is more than dtrain reads", name,
                              size.rows, size.columns),
                  "make it smaller");
}

void FailAsBroken(const std::string& name, const char* kind, const std::string& why) {
  throw DataError(fmt::format("{}: the {} is broken: {}", name, kind, why),
                  "remove the image, or save it anew");
}

ImageSize Turn::Of(const ImageSize& size) const {
  return exchange ? ImageSize{size.columns, size.rows} : size;
}

Turn TurnOf(int orientation) {
  const auto is_one_of = [&](std::initializer_list<int> values) {
    return std::ranges::find(values, orientation) != values.end();
  };
  return {is_one_of({3, 4, 6, 7}), is_one_of({2, 3, 7, 8}), orientation >= 5};
}

Pixels Turned(const Pixels& from, const Turn& turn) {
  Pixels to = BlankPixels(turn.Of(from.size), from.channels);
  to.original = turn.Of(from.original);
  to.used = TurnedPart(from.used, turn);
  // These are the position in `from` of the first pixel of `to`, and the distances of rows and
  // columns there.
  std::ptrdiff_t column_step = from.channels, row_step = from.size.columns * from.channels;
  const uint8_t* first = from.bytes.data();
  if (turn.reverse_rows) first += (from.size.rows - 1) * std::exchange(row_step, -row_step);
  if (turn.reverse_columns) {
    first += (from.size.columns - 1) * std::exchange(column_step, -column_step);
  }
  if (turn.exchange) std::swap(row_step, column_step);
  uint8_t* out = to.bytes.data();
  for (int64_t y = 0; y < to.size.rows; ++y) {
    for (int64_t x = 0; x < to.size.columns; ++x) {
      out = std::copy_n(first + y * row_step + x * column_step, from.channels, out);
    }
  }
  return to;
}

}  // namespace dtrain
