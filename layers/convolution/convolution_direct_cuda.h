// The convolution on the GPU that needs no library (convolution_direct_cuda.cu).
#pragma once

#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

// For images in the formats of OfferImage, of any shape, groups and dilation.
std::unique_ptr<Kernel> MakeConvolutionDirectCuda(const KernelRequest& request,
                                                  const KernelOffer& offer);

}  // namespace dtrain
