#include "framework/kernels/cpu/loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {

void SumColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, bool accumulate,
                float* sum) {
  if (!accumulate) {
    for (int64_t j = 0; j < columns; ++j) sum[j] = 0;
  }
  for (int64_t row = 0; row < rows; ++row, x += stride) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) sum[j] += x[j];
  }
}

void TanhForward(const float* x, int64_t count, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = Tanh(x[i]);
}

void TanhBackward(const float* y, const float* dy, int64_t count, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

void AddLoop(int64_t count, const float* addend, float* sum) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) sum[i] += addend[i];
}

}  // namespace dtrain::DTRAIN_ISA_NS
