// Runs the layer suite (tests/nn) on the CUDA module.
#include <map>

#include "framework/device/cuda/module.h"
#include "tests/cuda/module_under_test.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {

// Each thread has its own queue for each precision, as processes do.
Device DeviceUnderTest(Precision precision) {
  static thread_local std::map<Precision, Device> devices;
  Device& device = devices[precision];
  if (device.queue == nullptr) {
    const char* const folder = ModuleBesideTests() ? "" : DTRAIN_BINARY_DIR "/tests/cuda_standin";
    device = {DeviceKind::kCuda, 1, CpuIsa(), precision};
    device.queue = OpenCuda(precision, folder);
  }
  return device;
}

// The stand-in computes one element after the other, those of all samples alike.
int64_t LargestBatch() { return ModuleBesideTests() ? INT64_MAX : 20; }

}  // namespace dtrain
