// Implements group normalisation on the GPU under the name "direct".
#include "framework/kernels/cuda/row_norm.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeGroupNormCuda(const KernelRequest& request, const KernelOffer&) {
  return MakeRowNormCuda(request);
}

DTRAIN_KERNEL("group_norm", DeviceKind::kCuda, "direct", OfferPlain, MakeGroupNormCuda);

}  // namespace
}  // namespace dtrain
