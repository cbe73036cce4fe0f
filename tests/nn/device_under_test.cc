#include "tests/nn/layer_harness.h"

namespace dtrain {

Device DeviceUnderTest(Precision precision) { return {DeviceKind::kCpu, 1, CpuIsa(), precision}; }
int64_t LargestBatch() { return INT64_MAX; }

}  // namespace dtrain
