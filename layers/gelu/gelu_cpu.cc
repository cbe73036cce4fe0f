// Implements GELU on the CPU under the name "direct".
#include "framework/kernels/cpu/elementwise_kernel.h"
#include "layers/gelu/gelu.h"
#include "layers/gelu/gelu_loops.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeGeluDirect(const KernelRequest& request, const KernelOffer& offer) {
  const Isa isa = request.device.isa;
  ElementwiseLoops loops = {DTRAIN_ISA_SELECT(isa, GeluForward),
                            DTRAIN_ISA_SELECT(isa, GeluBackward), ElementwiseKeeps::kInput};
  if (static_cast<const Gelu*>(request.layer)->by_tanh()) {
    loops.forward = DTRAIN_ISA_SELECT(isa, TanhGeluForward);
    loops.backward = DTRAIN_ISA_SELECT(isa, TanhGeluBackward);
  }
  return MakeElementwise(request, offer, loops);
}

DTRAIN_KERNEL("gelu", DeviceKind::kCpu, "direct", OfferElementwise, MakeGeluDirect);

}  // namespace
}  // namespace dtrain
