#include "layers/lstm/lstm_loops.h"

#include "framework/device/cpu/vector_math.h"

namespace dtrain::DTRAIN_ISA_NS {

void LstmForward(float* row, const float* from_state, const float* cell_before, int64_t hidden,
                 float* state) {
  float *i = row, *f = row + hidden, *g = row + 2 * hidden, *o = row + 3 * hidden;
  float* c = row + 4 * hidden;
  const float *hi = from_state, *hf = hi + hidden, *hg = hf + hidden, *ho = hg + hidden;
#pragma GCC ivdep
  for (int64_t j = 0; j < hidden; ++j) {
    i[j] = Sigmoid(i[j] + hi[j]);
    f[j] = Sigmoid(f[j] + hf[j]);
    g[j] = Tanh(g[j] + hg[j]);
    o[j] = Sigmoid(o[j] + ho[j]);
    c[j] = f[j] * cell_before[j] + i[j] * g[j];
    state[j] = o[j] * Tanh(c[j]);
  }
}

void LstmBackward(float* row, const float* cell_before, int64_t hidden, float* dstate,
                  float* dcell) {
  float *i = row, *f = row + hidden, *g = row + 2 * hidden, *o = row + 3 * hidden;
  const float* c = row + 4 * hidden;
#pragma GCC ivdep
  for (int64_t j = 0; j < hidden; ++j) {
    const float tc = Tanh(c[j]), dh = dstate[j];
    const float dc = dcell[j] + dh * o[j] * (1 - tc * tc);
    const float ii = i[j], ff = f[j], gg = g[j], oo = o[j];
    i[j] = dc * gg * ii * (1 - ii);
    f[j] = dc * cell_before[j] * ff * (1 - ff);
    g[j] = dc * ii * (1 - gg * gg);
    o[j] = dh * tc * oo * (1 - oo);
    dcell[j] = dc * ff;
    dstate[j] = 0;
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
