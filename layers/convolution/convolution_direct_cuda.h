// Declares the GPU convolution that uses no library (convolution_direct_cuda.cu).
#pragma once

#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

// Returns a kernel for images of either type, with any shape, groups and dilation.
std::unique_ptr<Kernel> MakeConvolutionDirectCuda(const KernelRequest& request,
                                                  const KernelOffer& offer);

}  // namespace dtrain
