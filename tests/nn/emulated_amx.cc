// The bf16 convolution with its tiles in memory (framework/device/cpu/amx_tiles.h).  Only the tests
// register it, so that its arithmetic is tested on machines without AMX and no user's run chooses
// it.  A net takes it if a test names it.
#include "layers/convolution/bf16_passes.h"

namespace dtrain {
namespace {

std::optional<KernelOffer> OfferEmulatedAmx(const KernelRequest& request) {
  std::optional<KernelOffer> offer = OfferBf16Convolution(request);
  if (offer) offer->preference = -1;
  return offer;
}

std::unique_ptr<Kernel> MakeEmulatedAmx(const KernelRequest& request, const KernelOffer&) {
  return MakeBf16Convolution(request, isa_emulated::kBf16Loops);
}

DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "amx_emulated", OfferEmulatedAmx, MakeEmulatedAmx);

}  // namespace
}  // namespace dtrain
