// Implements leaky ReLU on the CPU under the name "direct".
#include "framework/kernels/cpu/elementwise_kernel.h"
#include "layers/leaky_relu/leaky_relu.h"
#include "layers/leaky_relu/leaky_relu_loops.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeLeakyReluDirect(const KernelRequest& request,
                                            const KernelOffer& offer) {
  const Isa isa = request.device.isa;
  const float slope = static_cast<const LeakyRelu*>(request.layer)->slope();
  const auto forward = [isa, slope](const float* x, int64_t count, float* y) {
    DTRAIN_ISA_SELECT(isa, LeakyReluForward)(x, count, slope, y);
  };
  const auto backward = [isa, slope](const float* y, const float* dy, int64_t count, float* dx) {
    DTRAIN_ISA_SELECT(isa, LeakyReluBackward)(y, dy, count, slope, dx);
  };
  return MakeElementwise(request, offer, {forward, backward});
}

DTRAIN_KERNEL("leaky_relu", DeviceKind::kCpu, "direct", OfferElementwise, MakeLeakyReluDirect);

}  // namespace
}  // namespace dtrain
