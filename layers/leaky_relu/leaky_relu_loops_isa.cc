#include "layers/leaky_relu/leaky_relu_loops.h"

namespace dtrain::DTRAIN_ISA_NS {

void LeakyReluForward(const float* x, int64_t count, float slope, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

void LeakyReluBackward(const float* y, const float* dy, int64_t count, float slope, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}

}  // namespace dtrain::DTRAIN_ISA_NS
