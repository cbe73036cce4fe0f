#include "framework/kernels/cpu/add.h"

#include "framework/device/cpu/parallel.h"

namespace dtrain {

void AddInto(const Device& device, int64_t count, const float* addend, float* sum) {
  ForEachSlice(device.threads, count, [&](Range slice) {
    DTRAIN_ISA_SELECT(device.isa, AddLoop)
    (slice.size(), addend + slice.begin, sum + slice.begin);
  });
}

}  // namespace dtrain
