// The kernel of layers that are a function of each element (relu, gelu) on the CPU: in whatever
// format the input has, in place where the net likes.  The layer's folder brings the two loops.
#pragma once

#include <functional>
#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

// What a backward pass knows of the forward pass.  From outputs an activation can overwrite its input;
// from inputs it can do so in evaluation only.
enum class ElementwiseKeeps { kOutput, kInput };

// Of one instruction set (DTRAIN_ISA_SELECT).
struct ElementwiseLoops {
  std::function<void(const float* x, int64_t count, float* y)> forward;  // y may be x
  // kept: y or x; dx may be dy.
  std::function<void(const float* kept, const float* dy, int64_t count, float* dx)> backward;
  ElementwiseKeeps keeps = ElementwiseKeeps::kOutput;
};

// For an offer of OfferElementwise.
std::unique_ptr<Kernel> MakeElementwise(const KernelRequest& request, const KernelOffer& offer,
                                        const ElementwiseLoops& loops);

}  // namespace dtrain
