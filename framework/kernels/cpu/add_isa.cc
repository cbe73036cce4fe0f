#include "framework/kernels/cpu/add.h"

namespace dtrain::DTRAIN_ISA_NS {

void AddLoop(int64_t count, const float* addend, float* sum) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) sum[i] += addend[i];
}

}  // namespace dtrain::DTRAIN_ISA_NS
