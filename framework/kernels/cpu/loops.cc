#include "framework/kernels/cpu/loops.h"

#include "framework/core/random.h"
#include "framework/device/cpu/parallel.h"

namespace dtrain {

void AddInto(const Device& device, int64_t count, const float* addend, float* sum) {
  ForEachSlice(device.threads, count, [&](Range slice) {
    DTRAIN_ISA_SELECT(device.isa, AddLoop)
    (slice.size(), addend + slice.begin, sum + slice.begin);
  });
}

void SumOverRows(const Device& device, const ConstMatrix& x, bool accumulate, float* sum) {
  RunTeam(device.threads, [&](int thread, int team) {
    const Range share = SplitEvenly({0, x.columns}, team, thread);
    DTRAIN_ISA_SELECT(device.isa, SumColumns)
    (x.data + share.begin, x.stride, x.rows, share.size(), accumulate, sum + share.begin);
  });
}

void MaskGradient(int threads, int64_t count, const float* y, float* dy) {
  ForEachSlice(threads, count, [&](Range r) {
    for (int64_t i = r.begin; i < r.end; ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
  });
}

DropoutSample SampleOf(const Random& random, double ratio) {
  const auto key = random.key(), high = random.counter_high();
  return {{key[0], key[1]},
          {high[0], high[1]},
          static_cast<uint32_t>(ratio * 0x1p32),
          static_cast<float>(1 / (1 - ratio))};
}

}  // namespace dtrain
