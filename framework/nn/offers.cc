#include "framework/nn/offers.h"

namespace dtrain {
namespace {

bool Serves(const KernelRequest& request) {
  return request.device.kind == DeviceKind::kCpu && !request.fused_relu;
}

}  // namespace

std::optional<KernelOffer> OfferPlain(const KernelRequest& request) {
  if (!Serves(request)) return std::nullopt;
  return AllPlain(request);
}

std::optional<KernelOffer> OfferElementwise(const KernelRequest& request) {
  if (!Serves(request)) return std::nullopt;
  return FollowInput(request);
}

}  // namespace dtrain
