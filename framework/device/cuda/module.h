// The CUDA module: everything that links CUDA lies in one shared library, libdtrain_cuda.so beside
// the program, or installed in lib/dtrain, which opens it at run time.  So one program serves machines with and without CUDA.
//
// The module holds the GPU's kernels, which register themselves as it is opened, as those of the CPU
// do before main.  It has no copy of the framework: registries, layers and errors are the program's,
// whose symbols it uses (README.md, "The module's seam").
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "framework/device/device.h"

namespace dtrain {

// "CUDA 13.0, cuDNN 9.19, driver for CUDA 13.0, NVIDIA H200 (139 GiB, 138 free)", "CUDA 13.0, ...,
// no GPU: this machine has no NVIDIA driver" or, without the module, "not built in".  Never throws.
std::string CudaDevices();

// Why nothing can be computed with CUDA here, and what to do about it.
struct CudaLack {
  std::string why;
  std::string hint;
  bool module_is_there = true;
  bool of_the_machine = false;  // the module is as it shall be: another machine may have a GPU
};

// None: there is a GPU that OpenCuda takes.  `folder`: where the module lies; "": beside the program,
// else where it is installed.
std::optional<CudaLack> WhyNoCuda(const std::filesystem::path& folder = "");

// This process's GPU and the versions of the libraries that compute on it, which decide bits: "NVIDIA H200,
// CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.19.0".  Throws as OpenCuda.
std::string CudaGpu();

// A queue of its own on this process's GPU: of those that CUDA shows, the one of its place on the
// node (OMPI_COMM_WORLD_LOCAL_RANK, SLURM_LOCALID), counted round where there are more ranks than
// GPUs.  Throws ConfigError with what WhyNoCuda says.
std::shared_ptr<DeviceQueue> OpenCuda(Precision precision,
                                      const std::filesystem::path& folder = "");

}  // namespace dtrain

// What the module exports as DtrainCuda().  `build` is told apart first: of another build nothing
// else may be looked at.
struct DtrainCudaModule {
  const char* build;  // version and source revision: "0.1.0 649b040"
  void (*describe)(char* text,
                   unsigned long bytes);  // the same text as CudaDevices, cut to `bytes`
  int (*count)(char* why_none, unsigned long bytes);  // GPUs; where 0, why
  void (*gpu)(int index, char* text, unsigned long bytes);
  void (*open)(int index, dtrain::Precision precision, std::shared_ptr<dtrain::DeviceQueue>* queue);
};

extern "C" const DtrainCudaModule* DtrainCuda();
