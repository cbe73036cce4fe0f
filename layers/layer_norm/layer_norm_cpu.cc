// Implements layer normalisation on the CPU under the name "direct".
#include "framework/kernels/cpu/row_norm.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeLayerNormDirect(const KernelRequest& request, const KernelOffer&) {
  return MakeRowNorm(request);
}

DTRAIN_KERNEL("layer_norm", DeviceKind::kCpu, "direct", OfferPlain, MakeLayerNormDirect);

}  // namespace
}  // namespace dtrain
