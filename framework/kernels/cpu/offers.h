// What simple kernels on the CPU offer (DTRAIN_KERNEL's `offer`): any shape, no fused ReLU.
#pragma once

#include <optional>

#include "framework/nn/kernel.h"

namespace dtrain {

// For layers that want everything row-major.
std::optional<KernelOffer> OfferPlain(const KernelRequest& request);
// For layers that work elementwise, in whatever format their input has.
std::optional<KernelOffer> OfferElementwise(const KernelRequest& request);

}  // namespace dtrain
