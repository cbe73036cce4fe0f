// Implements sigmoid on the CPU under the name "direct".
#include "framework/kernels/cpu/elementwise_kernel.h"
#include "layers/sigmoid/sigmoid_loops.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeSigmoidDirect(const KernelRequest& request, const KernelOffer& offer) {
  const Isa isa = request.device.isa;
  return MakeElementwise(
      request, offer,
      {DTRAIN_ISA_SELECT(isa, SigmoidForward), DTRAIN_ISA_SELECT(isa, SigmoidBackward)});
}

DTRAIN_KERNEL("sigmoid", DeviceKind::kCpu, "direct", OfferElementwise, MakeSigmoidDirect);

}  // namespace
}  // namespace dtrain
