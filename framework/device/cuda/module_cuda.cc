// Implements the table that the CUDA module exports.
#include <cstdio>
#include <string>

#include "framework/device/cuda/module.h"
#include "framework/device/cuda/queue.h"

namespace dtrain {
namespace {

std::string CudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string CudnnVersion() {
  const size_t version = cudnnGetVersion();
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

// Returns "13.1.0".  Needs no handle, which would take GPU memory.
std::string CublasVersion() {
  std::string version;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    DT_CUDA(cublasGetProperty, part, &value);
    if (!version.empty()) version += '.';
    version += std::to_string(value);
  }
  return version;
}

// Returns the newest CUDA version that the driver supports, as "13.0"; "" without a driver.
std::string DriverVersion() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return "";
  return CudaVersion(version);
}

// CUDA reports a missing driver as one that is too old.
std::string WhyNone(cudaError_t status) {
  const std::string driver = DriverVersion();
  if (driver.empty()) return "this machine has no NVIDIA driver";
  if (status == cudaErrorInsufficientDriver) {
    return "the driver is too old: it knows CUDA " + driver + ", the module is of " +
           CudaVersion(CUDART_VERSION);
  }
  return status == cudaSuccess ? "none" : cudaGetErrorString(status);
}

// cudaGetDeviceCount does not set the count if there is no driver.
int Count(char* why, unsigned long bytes) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  std::snprintf(why, bytes, "%s", WhyNone(status).c_str());
  return 0;
}

// Returns "NVIDIA H200 (139 GiB, 138 free)".
std::string DescribeGpu(int index) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return "one that does not answer";
  const auto gib = [](size_t size) { return static_cast<double>(size) / (1 << 30); };
  char text[400];
  std::snprintf(text, sizeof(text), "%s (%.0f GiB", properties.name,
                gib(properties.totalGlobalMem));
  std::string gpu = text;
  size_t free = 0, total = 0;
  if (cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess) {
    std::snprintf(text, sizeof(text), ", %.0f free", gib(free));
    gpu += text;
  }
  return gpu + ")";
}

void Describe(char* text, unsigned long bytes) {
  const std::string driver = DriverVersion();
  std::string all = "CUDA " + CudaVersion(CUDART_VERSION) + ", cuDNN " + CudnnVersion() +
                    (driver.empty() ? "" : ", driver for CUDA " + driver);
  char why[256];
  const int count = Count(why, sizeof(why));
  if (count == 0) all += std::string(", no GPU: ") + why;
  for (int i = 0; i < count; ++i) all += ", " + DescribeGpu(i);
  std::snprintf(text, bytes, "%s", all.c_str());
}

void Gpu(int index, char* text, unsigned long bytes) {
  cudaDeviceProp properties;
  DT_CUDA(cudaGetDeviceProperties, &properties, index);
  std::snprintf(text, bytes, "%s, CUDA %s, cuBLAS %s, cuDNN %s", properties.name,
                CudaVersion(CUDART_VERSION).c_str(), CublasVersion().c_str(),
                CudnnVersion().c_str());
}

void OpenQueue(int index, Precision precision, std::shared_ptr<DeviceQueue>* queue) {
  *queue = std::make_shared<CudaQueue>(index, precision);
}

constexpr DtrainCudaModule kModule = {DTRAIN_BUILD, Describe, Count, Gpu, OpenQueue};

}  // namespace
}  // namespace dtrain

extern "C" const DtrainCudaModule* DtrainCuda() { return &dtrain::kModule; }
