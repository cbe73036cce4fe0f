// Implements group normalisation on the CPU under the name "direct".
#include "framework/kernels/cpu/row_norm.h"

namespace dtrain {
namespace {

std::unique_ptr<Kernel> MakeGroupNormDirect(const KernelRequest& request, const KernelOffer&) {
  return MakeRowNorm(request);
}

DTRAIN_KERNEL("group_norm", DeviceKind::kCpu, "direct", OfferPlain, MakeGroupNormDirect);

}  // namespace
}  // namespace dtrain
