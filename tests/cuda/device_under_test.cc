// The layer suite (tests/nn) on the CUDA module: that of the stand-in (tests/cuda/standin), or with
// DTRAIN_TEST_GPU=1 the real one.
#include <cstdlib>

#include "framework/device/cuda/module.h"
#include "tests/nn/layer_harness.h"

namespace dtrain {

// Each thread has a queue of its own, as processes do.
Device DeviceUnderTest() {
  static thread_local const Device device = [] {
    const bool real = std::getenv("DTRAIN_TEST_GPU") != nullptr;
    const char* const folder = real ? DTRAIN_BINARY_DIR : DTRAIN_BINARY_DIR "/tests/cuda_standin";
    Device gpu{DeviceKind::kCuda, 1, CpuIsa()};
    gpu.queue = OpenCuda(Precision::kFp32, folder);
    return gpu;
  }();
  return device;
}

}  // namespace dtrain
