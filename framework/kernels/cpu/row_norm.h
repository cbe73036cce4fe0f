// The kernel of layer_norm and group_norm (nn/row_norm_layer.h) on the CPU: plain, for an offer of OfferPlain.
// Sums are double; threads share out rows, and parameters where sums go over the batch, so that their
// number changes no bit.
#pragma once

#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

std::unique_ptr<Kernel> MakeRowNorm(const KernelRequest& request);

}  // namespace dtrain
