// Implements layer normalisation on the GPU under the name "direct".
#include "framework/kernels/cuda/row_norm.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeLayerNormCuda(const KernelRequest& request, const KernelOffer&) {
  return MakeRowNormCuda(request);
}

DTRAIN_KERNEL("layer_norm", DeviceKind::kCuda, "direct", OfferPlain, MakeLayerNormCuda);

}  // namespace
}  // namespace dtrain
