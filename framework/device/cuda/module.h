// The CUDA module: everything that links CUDA lies in one shared library, libdtrain_cuda.so beside
// the program, which loads it at run time.  So one program serves machines with and without CUDA.
//
// So far the module only tells which devices there are, for `dtrain doctor`.
#pragma once

#include <filesystem>
#include <string>

namespace dtrain {

// "CUDA 13.0, NVIDIA H200 (139 GiB)", "CUDA 13.0, no device: ..." or, without the module, "not
// built in".  Never throws.
std::string CudaDevices();

// Why nothing can be computed with CUDA, and what to do about it.
struct CudaLack {
  std::string why;
  std::string hint;
};

// Looks for the module in `folder`; "": the program's.  That there is one is not enough yet: it has
// no kernels.
CudaLack WhyNoCuda(const std::filesystem::path& folder = "");

}  // namespace dtrain

// What the module exports: the same text, cut to `bytes` and terminated.
extern "C" void DtrainCudaDevices(char* text, unsigned long bytes);
