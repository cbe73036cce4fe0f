// Implements binary cross-entropy on the GPU under the name "direct".
#include "framework/kernels/cuda/element_loss.h"
#include "layers/binary_cross_entropy/binary_cross_entropy.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeBinaryCrossEntropyCuda(const KernelRequest& request,
                                                   const KernelOffer&) {
  return std::make_unique<ElementLossCuda<BinaryCrossEntropyTerm>>(request);
}

DTRAIN_KERNEL("binary_cross_entropy", DeviceKind::kCuda, "direct", OfferPlain,
              MakeBinaryCrossEntropyCuda);

}  // namespace
}  // namespace dtrain
