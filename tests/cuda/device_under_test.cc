// The layer suite (tests/nn) on the CUDA module.
#include "framework/device/cuda/module.h"
#include "tests/cuda/module_under_test.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {

// Each thread has a queue of its own, as processes do.
Device DeviceUnderTest() {
  static thread_local const Device device = [] {
    const char* const folder = ModuleBesideTests() ? "" : DTRAIN_BINARY_DIR "/tests/cuda_standin";
    Device gpu{DeviceKind::kCuda, 1, CpuIsa()};
    gpu.queue = OpenCuda(Precision::kFp32, folder);
    return gpu;
  }();
  return device;
}

}  // namespace dtrain
