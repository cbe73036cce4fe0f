// A stand-in for the CUDA, cuBLAS and cuDNN calls that the CUDA module makes, so that its code runs on a
// machine without a GPU: a test aid, slow, never shipped.
//
// It computes.  A stream is a thread that does what it is asked for later, in order, so that a
// missing wait shows; the device's memory is closed while no stream works, so that host code that
// touches it crashes.  Our own kernels run as loops (framework/kernels/cuda/loops.h), the libraries'
// calls as naive loops from the descriptors given.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace dtrain::standin {

// Does `work` when the stream has come to it.
void InStream(cudaStream_t stream, std::function<void()> work);

// Whether all of these bytes lie in one piece of the device's memory.
bool OnDevice(const void* memory, size_t bytes);

// Stops the program: the module has asked for what the stand-in, or the library, cannot do.
[[noreturn]] void Refuse(const char* call, const char* why);

}  // namespace dtrain::standin
