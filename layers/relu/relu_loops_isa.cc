#include "layers/relu/relu_loops.h"

namespace dtrain::DTRAIN_ISA_NS {

void ReluForward(const float* x, int64_t count, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

void ReluBackward(const float* y, const float* dy, int64_t count, float* dx) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

}  // namespace dtrain::DTRAIN_ISA_NS
