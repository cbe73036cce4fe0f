#include "framework/kernels/cpu/offers.h"

namespace dtrain {

std::optional<KernelOffer> OfferPlain(const KernelRequest& request) {
  if (request.fused_relu) return std::nullopt;
  return AllPlain(request);
}

std::optional<KernelOffer> OfferElementwise(const KernelRequest& request) {
  if (request.fused_relu) return std::nullopt;
  return FollowInput(request);
}

}  // namespace dtrain
