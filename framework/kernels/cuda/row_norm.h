// The kernel of layer_norm and group_norm (nn/row_norm_layer.h) on the GPU: plain, for an offer of
// OfferPlain; sums in double, as on the CPU.
#pragma once

#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

std::unique_ptr<Kernel> MakeRowNormCuda(const KernelRequest& request);

}  // namespace dtrain
