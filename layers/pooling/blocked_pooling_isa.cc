#include "framework/device/cpu/simd.h"
#include "layers/pooling/blocked_pooling.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

typedef uint8_t VecByte __attribute__((vector_size(kLanes)));
typedef uint8_t UnalignedVecByte __attribute__((vector_size(kLanes), aligned(1), may_alias));

DTRAIN_INLINE int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
DTRAIN_INLINE int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

// Describes the rows [top, bottom) and columns [left, right) of a window that are inside the image. first_row and
// first_column are the window's upper left corner, which may be outside.
struct Window {
  int64_t top, bottom, left, right;
  int64_t first_row, first_column;
};

DTRAIN_INLINE Window WindowAt(const PoolingPlane& plane, int64_t row, int64_t column) {
  const int64_t top = row * plane.stride - plane.pad;
  const int64_t left = column * plane.stride - plane.pad;
  return {.top = Max(top, 0),
          .bottom = Min(top + plane.kernel, plane.height),
          .left = Max(left, 0),
          .right = Min(left + plane.kernel, plane.width),
          .first_row = top,
          .first_column = left};
}

// Calls pixel(index in the plane, place in the window) for each pixel of the window.
template <class Pixel>
DTRAIN_INLINE void ForEachPixel(const PoolingPlane& plane, const Window& window,
                                const Pixel& pixel) {
  for (int64_t r = window.top; r < window.bottom; ++r) {
    for (int64_t c = window.left; c < window.right; ++c) {
      pixel(r * plane.width + c, (r - window.first_row) * plane.kernel + (c - window.first_column));
    }
  }
}

// Calls output(index in the output plane, row, column) for each vector of outputs.
template <class Output>
DTRAIN_INLINE void ForEachOutput(const PoolingPlane& plane, const Output& output) {
  for (int64_t r = 0; r < plane.out_height; ++r) {
    for (int64_t c = 0; c < plane.out_width; ++c) output(r * plane.out_width + c, r, c);
  }
}

// Returns true for the most common window, 2 x 2 with stride 2 and no padding, which has special code.
DTRAIN_INLINE bool IsTwoByTwo(const PoolingPlane& plane) {
  return plane.kernel == 2 && plane.stride == 2 && plane.pad == 0;
}

struct Best {
  Vec value;
  VecInt place;
};

// Replaces `best` by a later pixel if that is larger or NaN, so that a NaN propagates.
DTRAIN_INLINE void Challenge(Best& best, Vec value, int place) {
  const VecInt wins = (value > best.value) | (value != value);
  best.value = wins ? value : best.value;
  best.place = wins ? VecInt{} + place : best.place;
}

DTRAIN_INLINE void StoreBest(Best best, bool relu, float* y, uint8_t* winners) {
  if (relu) {
    const VecInt closed = best.value <= 0;
    best.value = closed ? Zero() : best.value;
    best.place = closed ? VecInt{} + kNoWinner : best.place;
  }
  Store(y, best.value);
  if (winners == nullptr) return;
  *reinterpret_cast<UnalignedVecByte*>(winners) = __builtin_convertvector(best.place, VecByte);
}

DTRAIN_INLINE VecInt LoadWinners(const uint8_t* winners) {
  return __builtin_convertvector(*reinterpret_cast<const UnalignedVecByte*>(winners), VecInt);
}

DTRAIN_INLINE Best BestOfTwoByTwo(const float* x, int64_t row_stride, int64_t pixel) {
  Best best = {Load(x), VecInt{}};
  Challenge(best, Load(x + pixel), 1);
  Challenge(best, Load(x + row_stride), 2);
  Challenge(best, Load(x + row_stride + pixel), 3);
  return best;
}

DTRAIN_INLINE Best BestOf(const PoolingPlane& plane, const float* x, int64_t row, int64_t column) {
  const Window window = WindowAt(plane, row, column);
  Best best = {};
  bool fresh = true;
  ForEachPixel(plane, window, [&](int64_t at, int64_t place) {
    const Vec value = Load(x + at * plane.lanes);
    if (fresh) best = {value, VecInt{} + static_cast<int>(place)};
    if (!fresh) Challenge(best, value, static_cast<int>(place));
    fresh = false;
  });
  return best;
}

void Clear(float* data, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) Store(data + i, Zero());
}

// The windows do not overlap and cover all pixels of dx, so each is written once.
void TwoByTwoBackward(const PoolingPlane& plane, const float* dy, const uint8_t* winners,
                      float* dx) {
  const int64_t row_stride = plane.width * plane.lanes;
  if (plane.width % 2 != 0 || plane.height % 2 != 0) Clear(dx, plane.height * row_stride);
  ForEachOutput(plane, [&](int64_t at, int64_t row, int64_t column) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const Vec gradient = Load(dy + at * plane.lanes + lane);
      const VecInt winner = LoadWinners(winners + at * plane.lanes + lane);
      float* to = dx + 2 * (row * row_stride + column * plane.lanes) + lane;
      Store(to, winner == 0 ? gradient : Zero());
      Store(to + plane.lanes, winner == 1 ? gradient : Zero());
      Store(to + row_stride, winner == 2 ? gradient : Zero());
      Store(to + row_stride + plane.lanes, winner == 3 ? gradient : Zero());
    }
  });
}

DTRAIN_INLINE void MaxPool(const PoolingPlane& plane, const float* x, bool relu, float* y,
                           uint8_t* winners) {
  const bool two_by_two = IsTwoByTwo(plane);
  ForEachOutput(plane, [&](int64_t at, int64_t row, int64_t column) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const int64_t out = at * plane.lanes + lane;
      const Best best =
          two_by_two ? BestOfTwoByTwo(x + 2 * (row * plane.width + column) * plane.lanes + lane,
                                      plane.width * plane.lanes, plane.lanes)
                     : BestOf(plane, x + lane, row, column);
      StoreBest(best, relu, y + out, winners == nullptr ? nullptr : winners + out);
    }
  });
}

DTRAIN_INLINE void MaxPoolBackward(const PoolingPlane& plane, const float* dy,
                                   const uint8_t* winners, float* dx) {
  if (IsTwoByTwo(plane)) return TwoByTwoBackward(plane, dy, winners, dx);
  Clear(dx, plane.height * plane.width * plane.lanes);
  ForEachOutput(plane, [&](int64_t at, int64_t row, int64_t column) {
    const Window window = WindowAt(plane, row, column);
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const Vec gradient = Load(dy + at * plane.lanes + lane);
      const VecInt winner = LoadWinners(winners + at * plane.lanes + lane);
      ForEachPixel(plane, window, [&](int64_t in, int64_t place) {
        float* to = dx + in * plane.lanes + lane;
        Store(to, Load(to) + (winner == static_cast<int>(place) ? gradient : Zero()));
      });
    }
  });
}

DTRAIN_INLINE void AveragePool(const PoolingPlane& plane, const float* x, float* y) {
  const Vec share = Set1(1.0f / static_cast<float>(plane.kernel * plane.kernel));
  ForEachOutput(plane, [&](int64_t at, int64_t row, int64_t column) {
    const Window window = WindowAt(plane, row, column);
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      Vec sum = Zero();
      ForEachPixel(plane, window,
                   [&](int64_t in, int64_t) { sum += Load(x + in * plane.lanes + lane); });
      Store(y + at * plane.lanes + lane, sum * share);
    }
  });
}

DTRAIN_INLINE void AveragePoolBackward(const PoolingPlane& plane, const float* dy, float* dx) {
  const Vec share = Set1(1.0f / static_cast<float>(plane.kernel * plane.kernel));
  Clear(dx, plane.height * plane.width * plane.lanes);
  ForEachOutput(plane, [&](int64_t at, int64_t row, int64_t column) {
    const Window window = WindowAt(plane, row, column);
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const Vec gradient = Load(dy + at * plane.lanes + lane) * share;
      ForEachPixel(plane, window, [&](int64_t in, int64_t) {
        float* to = dx + in * plane.lanes + lane;
        Store(to, Load(to) + gradient);
      });
    }
  });
}

// Sixteen lanes are the most common case, so `loop` is compiled once more for that constant.
template <class Loop>
DTRAIN_INLINE void WithLanes(PoolingPlane plane, const Loop& loop) {
  if (plane.lanes != 16) return loop(plane);
  plane.lanes = 16;
  loop(plane);
}

}  // namespace

void MaxPoolPlane(const PoolingPlane& plane, const float* x, bool relu, float* y,
                  uint8_t* winners) {
  WithLanes(
      plane, [&](const PoolingPlane& p)
                 __attribute__((always_inline)) { MaxPool(p, x, relu, y, winners); });
}

void MaxPoolPlaneBackward(const PoolingPlane& plane, const float* dy, const uint8_t* winners,
                          float* dx) {
  WithLanes(
      plane, [&](const PoolingPlane& p)
                 __attribute__((always_inline)) { MaxPoolBackward(p, dy, winners, dx); });
}

void AveragePoolPlane(const PoolingPlane& plane, const float* x, float* y) {
  WithLanes(
      plane, [&](const PoolingPlane& p) __attribute__((always_inline)) { AveragePool(p, x, y); });
}

void AveragePoolPlaneBackward(const PoolingPlane& plane, const float* dy, float* dx) {
  WithLanes(
      plane, [&](const PoolingPlane& p)
                 __attribute__((always_inline)) { AveragePoolBackward(p, dy, dx); });
}

}  // namespace dtrain::DTRAIN_ISA_NS
