#include <cstring>

#include "layers/eltwise/eltwise_loops.h"

namespace dtrain::DTRAIN_ISA_NS {

namespace {

void Pass(const float* y, const float* dy, int64_t count, float* dx) {
  if (y == nullptr) {
    if (dx != dy) std::memcpy(dx, dy, static_cast<size_t>(count) * sizeof(float));
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

}  // namespace

void SumForward(const float* a, const float* b, int64_t count, bool relu, float* y) {
  if (relu) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i] < 0 ? 0 : a[i] + b[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
  }
}

// db first: da may be dy, and masking twice changes nothing.
void SumBackward(const float* y, const float* dy, int64_t count, float* da, float* db) {
  if (db != nullptr) Pass(y, dy, count, db);
  if (da != nullptr) Pass(y, dy, count, da);
}

}  // namespace dtrain::DTRAIN_ISA_NS
