#include "framework/kernels/cpu/row_loops.h"

#include "framework/device/cpu/parallel.h"

namespace dtrain {

void SumOverRows(const Device& device, const float* x, int64_t stride, int64_t rows,
                 int64_t columns, bool accumulate, float* sum) {
  RunTeam(device.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, columns}, team, thread);
    DTRAIN_ISA_SELECT(device.isa, SumColumns)
    (x + share.begin, stride, rows, share.size(), accumulate, sum + share.begin);
  });
}

}  // namespace dtrain
