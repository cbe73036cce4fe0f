// The kernel of layers that are a function of each element (relu, tanh) on the CPU: in whatever
// format the input has, in place where the net likes.  The layer's folder brings the two loops.
#pragma once

#include <memory>

#include "framework/nn/kernel.h"

namespace dtrain {

// Of one instruction set (DTRAIN_ISA_SELECT).
struct ElementwiseLoops {
  void (*forward)(const float* x, int64_t count, float* y);                     // y may be x
  void (*backward)(const float* y, const float* dy, int64_t count, float* dx);  // dx may be dy
};

// For an offer of OfferElementwise.
std::unique_ptr<Kernel> MakeElementwise(const KernelRequest& request, const KernelOffer& offer,
                                        const ElementwiseLoops& loops);

}  // namespace dtrain
