// Implements tanh on the CPU under the name "direct".
#include "framework/kernels/cpu/elementwise_kernel.h"
#include "framework/kernels/cpu/loops.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeTanhDirect(const KernelRequest& request, const KernelOffer& offer) {
  const Isa isa = request.device.isa;
  return MakeElementwise(
      request, offer, {DTRAIN_ISA_SELECT(isa, TanhForward), DTRAIN_ISA_SELECT(isa, TanhBackward)});
}

DTRAIN_KERNEL("tanh", DeviceKind::kCpu, "direct", OfferElementwise, MakeTanhDirect);

}  // namespace
}  // namespace dtrain
