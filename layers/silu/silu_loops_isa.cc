#include "layers/silu/silu_loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {

void SiluForward(const float* x, int64_t count, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * Sigmoid(x[i]);
}

void SiluBackward(const float* x, const float* dy, int64_t count, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float s = Sigmoid(x[i]);
    dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
