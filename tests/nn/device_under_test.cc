#include "tests/nn/layer_harness.h"

namespace dtrain {

Device DeviceUnderTest(Precision precision) { return {DeviceKind::kCpu, 1, CpuIsa(), precision}; }

}  // namespace dtrain
