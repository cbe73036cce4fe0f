// Implements ReLU on the CPU under the name "direct".
#include "framework/kernels/cpu/elementwise_kernel.h"
#include "layers/relu/relu_loops.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeReluDirect(const KernelRequest& request, const KernelOffer& offer) {
  const Isa isa = request.device.isa;
  return MakeElementwise(
      request, offer, {DTRAIN_ISA_SELECT(isa, ReluForward), DTRAIN_ISA_SELECT(isa, ReluBackward)});
}

DTRAIN_KERNEL("relu", DeviceKind::kCpu, "direct", OfferElementwise, MakeReluDirect);

}  // namespace
}  // namespace dtrain
