// Convolution on the CPU, implementation "amx": with `precision: bf16`, on a CPU with AMX
// (convolution_bf16.h).
//
// Only the factors of products are bf16; sums, and all that is kept, are fp32.
#include "framework/device/cpu/amx.h"
#include "layers/convolution/convolution_bf16.h"

namespace dtrain {
namespace {

std::optional<KernelOffer> OfferConvolutionAmx(const KernelRequest& request) {
  if (request.device.isa != Isa::kAvx512 || !AmxAvailable()) return std::nullopt;
  std::optional<KernelOffer> offer = OfferBf16Convolution(request);
  if (offer) offer->preference = 40;
  return offer;
}

std::unique_ptr<Kernel> MakeConvolutionAmx(const KernelRequest& request, const KernelOffer&) {
  return MakeBf16Convolution(request, isa_amx::kBf16Loops);
}

DTRAIN_KERNEL("convolution", "amx", OfferConvolutionAmx, MakeConvolutionAmx);

}  // namespace
}  // namespace dtrain
