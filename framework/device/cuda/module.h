// The CUDA module is the shared library libdtrain_cuda.so: it holds everything that links CUDA.  The program opens it
// at run time, from its own folder or from lib/dtrain, so that one program serves machines with and without CUDA.
//
// The module holds the GPU's kernels, which register themselves when it is opened, as those of the CPU do before main.
// It contains no copy of the framework: it uses the program's symbols for registries, layers and errors (README.md,
// "The module's interface").
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "framework/device/device.h"

namespace dtrain {

// Returns "CUDA 13.0, cuDNN 9.19, driver for CUDA 13.0, NVIDIA H200 (139 GiB, 138 free)", "CUDA 13.0, ..., no GPU: this
// machine has no NVIDIA driver" or, without the module, "not built in".  Never throws.
std::string CudaDevices();

// The reason why CUDA cannot be used, and what to do about it.
struct CudaLack {
  std::string why;
  std::string hint;
  bool module_is_there = true;
  bool of_the_machine = false;  // the module is fine, but this machine has no usable GPU
};

// Returns none if there is a GPU that OpenCuda would use.  `folder` is the module's; "": the program's folder, else
// lib/dtrain.
std::optional<CudaLack> WhyNoCuda(const std::filesystem::path& folder = "");

// Returns this process's GPU and the versions of its libraries, which decide bits: "NVIDIA H200, CUDA 13.0, cuBLAS
// 13.1.0, cuDNN 9.19.0".  Throws as OpenCuda.
std::string CudaGpu();

// Opens a new queue on this process's GPU: the one, of those that CUDA shows, whose number is the process's rank on its
// node (OMPI_COMM_WORLD_LOCAL_RANK, SLURM_LOCALID), modulo the number of GPUs.  Throws ConfigError with WhyNoCuda's
// reason.
std::shared_ptr<DeviceQueue> OpenCuda(Precision precision,
                                      const std::filesystem::path& folder = "");

}  // namespace dtrain

// DtrainCudaModule is the table that the module exports as DtrainCuda().  `build` is compared first: the rest of
// another build's table must not be read.
struct DtrainCudaModule {
  const char* build;  // version and source revision: "0.1.0 649b040"
  void (*describe)(char* text,
                   unsigned long bytes);              // CudaDevices, cut to `bytes`
  int (*count)(char* why_none, unsigned long bytes);  // number of GPUs; if 0, the reason
  void (*gpu)(int index, char* text, unsigned long bytes);
  void (*open)(int index, dtrain::Precision precision, std::shared_ptr<dtrain::DeviceQueue>* queue);
};

extern "C" const DtrainCudaModule* DtrainCuda();
