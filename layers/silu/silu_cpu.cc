// Implements SiLU on the CPU under the name "direct".
#include "framework/kernels/cpu/elementwise_kernel.h"
#include "layers/silu/silu_loops.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeSiluDirect(const KernelRequest& request, const KernelOffer& offer) {
  const Isa isa = request.device.isa;
  return MakeElementwise(request, offer,
                         {DTRAIN_ISA_SELECT(isa, SiluForward), DTRAIN_ISA_SELECT(isa, SiluBackward),
                          ElementwiseKeeps::kInput});
}

DTRAIN_KERNEL("silu", DeviceKind::kCpu, "direct", OfferElementwise, MakeSiluDirect);

}  // namespace
}  // namespace dtrain
