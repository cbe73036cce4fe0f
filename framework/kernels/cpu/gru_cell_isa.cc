#include "framework/kernels/cpu/gru_cell.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {

void GruForward(float* row, const float* from_state, const float* state_before, int64_t hidden,
                float* state) {
  float *r = row, *z = row + hidden, *n = row + 2 * hidden, *hn = row + 3 * hidden;
  const float *hr = from_state, *hz = from_state + hidden, *from_hn = from_state + 2 * hidden;
#pragma GCC ivdep
  for (int64_t i = 0; i < hidden; ++i) {
    r[i] = Sigmoid(r[i] + hr[i]);
    z[i] = Sigmoid(z[i] + hz[i]);
    hn[i] = from_hn[i];
    n[i] = Tanh(n[i] + r[i] * hn[i]);
    state[i] = n[i] + z[i] * (state_before[i] - n[i]);
  }
}

void GruBackward(float* row, const float* state_before, int64_t hidden, float* dstate) {
  float *r = row, *z = row + hidden, *n = row + 2 * hidden, *hn = row + 3 * hidden;
#pragma GCC ivdep
  for (int64_t i = 0; i < hidden; ++i) {
    const float dh = dstate[i];
    const float dxn = dh * (1 - z[i]) * (1 - n[i] * n[i]);
    const float dxz = dh * (state_before[i] - n[i]) * z[i] * (1 - z[i]);
    const float dxr = dxn * hn[i] * r[i] * (1 - r[i]);
    dstate[i] = dh * z[i];
    hn[i] = dxn * r[i];
    n[i] = dxn;
    z[i] = dxz;
    r[i] = dxr;
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
