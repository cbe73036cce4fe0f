#include "tests/nn/layer_harness.h"

namespace dtrain {

Device DeviceUnderTest() { return {DeviceKind::kCpu, 1, CpuIsa()}; }

}  // namespace dtrain
