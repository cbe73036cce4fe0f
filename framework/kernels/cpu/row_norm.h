// Declares the CPU kernel of layer_norm and group_norm (nn/row_norm_layer.h).  Register it with OfferPlain: all tensors
// must be row-major.  Sums are double.  Threads divide the rows, and the parameters in sums over the batch, so the
// result is bitwise the same for any number of threads.
#pragma once

#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

std::unique_ptr<Kernel> MakeRowNorm(const KernelRequest& request);

}  // namespace dtrain
