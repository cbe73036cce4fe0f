#include "layers/sigmoid/sigmoid_loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {

void SigmoidForward(const float* x, int64_t count, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = Sigmoid(x[i]);
}

void SigmoidBackward(const float* y, const float* dy, int64_t count, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

}  // namespace dtrain::DTRAIN_ISA_NS
