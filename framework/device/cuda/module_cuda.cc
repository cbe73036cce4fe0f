// What the module exports.
#include <cstdio>
#include <cstring>

#include "framework/device/cuda/module.h"
#include "framework/device/cuda/queue.h"

namespace dtrain {
namespace {

// cudaGetDeviceCount leaves the count alone where there is no driver.
int Count(char* why, unsigned long bytes) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  std::snprintf(why, bytes, "%s", status == cudaSuccess ? "none" : cudaGetErrorString(status));
  return 0;
}

void Describe(char* text, unsigned long bytes) {
  const size_t dnn = cudnnGetVersion();
  int used = std::snprintf(text, bytes, "CUDA %d.%d, cuDNN %zu.%zu", CUDART_VERSION / 1000,
                           CUDART_VERSION % 1000 / 10, dnn / 10000, dnn % 10000 / 100);
  char why[256];
  const int count = Count(why, sizeof(why));
  if (count == 0) {
    std::snprintf(text + used, bytes - static_cast<unsigned long>(used), ", no GPU: %s", why);
  }
  for (int i = 0; i < count && used < static_cast<int>(bytes); ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    used +=
        std::snprintf(text + used, bytes - static_cast<unsigned long>(used), ", %s (%.0f GiB)",
                      properties.name, static_cast<double>(properties.totalGlobalMem) / (1 << 30));
  }
}

void OpenQueue(int index, Precision precision, std::shared_ptr<DeviceQueue>* queue) {
  *queue = std::make_shared<CudaQueue>(index, precision);
}

constexpr DtrainCudaModule kModule = {DTRAIN_BUILD, Describe, Count, OpenQueue};

}  // namespace
}  // namespace dtrain

extern "C" const DtrainCudaModule* DtrainCuda() { return &dtrain::kModule; }
