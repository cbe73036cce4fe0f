// Implements binary cross-entropy on the CPU under the name "direct".
#include "framework/kernels/cpu/element_loss.h"
#include "layers/binary_cross_entropy/binary_cross_entropy.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeBinaryCrossEntropyDirect(const KernelRequest& request,
                                                     const KernelOffer&) {
  return std::make_unique<ElementLossCpu<BinaryCrossEntropyTerm>>(request);
}

DTRAIN_KERNEL("binary_cross_entropy", DeviceKind::kCpu, "direct", OfferPlain,
              MakeBinaryCrossEntropyDirect);

}  // namespace
}  // namespace dtrain
