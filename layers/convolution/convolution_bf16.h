// What the bf16 convolution's implementations share: they differ in the copy of its loops
// (bf16_loops.h) that they run.
#pragma once

#include <memory>
#include <optional>

#include "framework/nn/kernel.h"
#include "layers/convolution/bf16_loops.h"

namespace dtrain {

// With `precision: bf16`, for channels in multiples of 32.  The rule looks at channels and
// precision only, so training and evaluation of any batch choose alike.
std::optional<KernelOffer> OfferBf16Convolution(const KernelRequest& request);

std::unique_ptr<Kernel> MakeBf16Convolution(const KernelRequest& request, const Bf16Loops& loops);

}  // namespace dtrain
