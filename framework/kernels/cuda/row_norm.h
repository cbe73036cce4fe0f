// Declares the GPU kernel of layer_norm and group_norm (nn/row_norm_layer.h).  Register it with OfferPlain: all tensors
// must be row-major.  Sums are double, as on the CPU.
#pragma once

#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

std::unique_ptr<Kernel> MakeRowNormCuda(const KernelRequest& request);

}  // namespace dtrain
