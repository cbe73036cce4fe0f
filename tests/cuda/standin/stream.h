// A stand-in for the CUDA, cuBLAS and cuDNN calls that the CUDA module makes, so that its code runs
// on a machine without a GPU.  It is a slow test aid that is never shipped.
//
// The stand-in computes real results.  A stream is a thread that does its work later and in order,
// so that a missing wait is detected.  The device's memory is inaccessible but for what a kernel's
// launch names (framework/device/cuda/access.h), while it runs: host code or a kernel that touches
// other memory ends the program with the kernel's name.  Pages are what is opened, so a stray access
// within a page that is open goes unnoticed.  Our own kernels run as loops
// (framework/kernels/cuda/loops.h), the libraries' calls as naive loops that follow the given
// descriptors.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "framework/device/cuda/access.h"

namespace dtrain::standin {

// Runs `work` in the stream, after the work that was queued before it.  It may touch `accesses`.
void LaunchKernel(cudaStream_t stream, const char* name, std::vector<Access> accesses,
                  std::function<void()> work);

// True if all of these bytes are in one allocation of the device's memory.
bool OnDevice(const void* memory, size_t bytes);

// Stops the program, because the module made a call that the stand-in or the real library does not
// support.
[[noreturn]] void Refuse(const char* call, const char* why);

}  // namespace dtrain::standin
