#include "framework/kernels/cpu/row_loops.h"

#include "framework/device/cpu/parallel.h"

namespace dtrain {

void SumOverRows(const Device& device, const ConstMatrix& x, bool accumulate, float* sum) {
  RunTeam(device.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, x.columns}, team, thread);
    DTRAIN_ISA_SELECT(device.isa, SumColumns)
    (x.data + share.begin, x.stride, x.rows, share.size(), accumulate, sum + share.begin);
  });
}

}  // namespace dtrain
