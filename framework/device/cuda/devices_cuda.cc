#include <cuda_runtime_api.h>

#include <cstdio>

#include "framework/device/cuda/module.h"

// cudaGetDeviceCount leaves the count alone where there is no driver.
extern "C" void DtrainCudaDevices(char* text, unsigned long bytes) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  const int major = CUDART_VERSION / 1000;
  const int minor = CUDART_VERSION % 1000 / 10;
  if (status != cudaSuccess || count == 0) {
    const char* why = status == cudaSuccess ? "none found" : cudaGetErrorString(status);
    std::snprintf(text, bytes, "CUDA %d.%d, no device: %s", major, minor, why);
    return;
  }
  int used = std::snprintf(text, bytes, "CUDA %d.%d", major, minor);
  for (int i = 0; i < count && used < static_cast<int>(bytes); ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    used +=
        std::snprintf(text + used, bytes - static_cast<unsigned long>(used), ", %s (%.0f GiB)",
                      properties.name, static_cast<double>(properties.totalGlobalMem) / (1 << 30));
  }
}
