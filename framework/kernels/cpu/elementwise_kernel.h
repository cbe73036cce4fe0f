// Implements the CPU kernel of layers that apply one function to each element (relu, gelu).  It runs in whatever format
// the input has, and in place where the net allows it.  The layer's folder supplies the two loops.
#pragma once

#include <functional>
#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

// The backward pass reads this tensor.  With kOutput an activation may overwrite its input; with kInput it may do so
// only in evaluation.
enum class ElementwiseKeeps { kOutput, kInput };

// The loops of one instruction set (DTRAIN_ISA_SELECT chooses them).
struct ElementwiseLoops {
  std::function<void(const float* x, int64_t count, float* y)> forward;  // y may be x
  // kept is y or x, as `keeps` states; dx may be dy.
  std::function<void(const float* kept, const float* dy, int64_t count, float* dx)> backward;
  ElementwiseKeeps keeps = ElementwiseKeeps::kOutput;
};

// Returns a kernel for `offer`, which must be one that OfferElementwise made.
std::unique_ptr<Kernel> MakeElementwise(const KernelRequest& request, const KernelOffer& offer,
                                        const ElementwiseLoops& loops);

}  // namespace dtrain
