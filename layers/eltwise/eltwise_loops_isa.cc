#include <cstring>

#include "framework/device/cpu/simd.h"
#include "layers/eltwise/eltwise_loops.h"

namespace dtrain::DTRAIN_ISA_NS {

namespace {

template <class Join>
DTRAIN_INLINE void ForEachPair(const float* a, const float* b, int64_t count, bool relu, float* y,
                               const Join& join) {
  if (relu) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = join(a[i], b[i]) < 0 ? 0 : join(a[i], b[i]);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = join(a[i], b[i]);
  }
}

}  // namespace

void SumForward(const float* a, const float* b, int64_t count, bool relu, float* y) {
  ForEachPair(a, b, count, relu, y, [](float one, float other) { return one + other; });
}

void ProductForward(const float* a, const float* b, int64_t count, bool relu, float* y) {
  ForEachPair(a, b, count, relu, y, [](float one, float other) { return one * other; });
}

void MaxForward(const float* a, MaxTerm b, int64_t count, bool relu, float* y, uint16_t* first) {
  const float* const values = b.values;
  // `first` is written before y, because y may be a.
  if (first != nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      const bool wins = values[i] > a[i] || (values[i] != values[i] && a[i] == a[i]);
      const uint16_t best = b.place == 1 ? uint16_t{0} : first[i];
      first[i] = wins ? b.place : best;
    }
  }
  ForEachPair(a, values, count, relu, y,
              [](float one, float other) { return other > one || other != other ? other : one; });
}

void PassGradient(const float* y, const float* dy, int64_t count, float* dx) {
  if (y == nullptr) {
    if (dx != dy) std::memcpy(dx, dy, static_cast<size_t>(count) * sizeof(float));
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

void MultiplyBy(const float* x, int64_t count, float* dx) {
  for (int64_t i = 0; i < count; ++i) dx[i] *= x[i];
}

void KeepWhereFirst(const uint16_t* first, uint16_t place, int64_t count, float* dx) {
  for (int64_t i = 0; i < count; ++i) dx[i] = first[i] == place ? dx[i] : 0;
}

}  // namespace dtrain::DTRAIN_ISA_NS
