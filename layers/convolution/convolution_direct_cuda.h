// Declares the GPU convolution that uses no library (convolution_direct_cuda.cu), and what both of them share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/core/error.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// Returns an extent as an int, which is cuDNN's, and ours where indices are divided.  Throws ShapeError if it is too large.
inline int ToInt(int64_t extent) {
  if (extent > INT32_MAX) throw ShapeError(std::to_string(extent) + " is too large a number");
  return static_cast<int>(extent);
}

// Returns a kernel for images of either type, with any shape, groups and dilation.
std::unique_ptr<Kernel> MakeConvolutionDirectCuda(const KernelRequest& request,
                                                  const KernelOffer& offer);

}  // namespace dtrain
