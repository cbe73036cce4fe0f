// Implements convolution on the CPU under the name "amx", for `precision: bf16` on a CPU with AMX (bf16_passes.h).
//
// Only the factors of products are bf16; sums and all tensors are fp32.
#include "framework/core/isa.h"
#include "layers/convolution/bf16_passes.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/passes_kernel.h"

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

DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "amx", OfferConvolutionAmx, MakeConvolutionAmx);

}  // namespace

std::optional<KernelOffer> OfferBf16Convolution(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Device& device = request.device;
  if (device.precision != Precision::kBf16) return std::nullopt;
  if (!layer.IsPlainSquare()) return std::nullopt;
  if (layer.channels() % kBf16Block != 0 || layer.outputs() % kBf16Block != 0) return std::nullopt;
  KernelOffer offer;
  offer.inputs = {Format::kChannelsLast};
  offer.outputs = {Format::kChannelsLast};
  return offer;
}

std::unique_ptr<Kernel> MakeBf16Convolution(const KernelRequest& request, const Bf16Loops& loops) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Bf16Problem problem = {.x = request.inputs[0],
                               .y = request.outputs[0],
                               .kernel = layer.kernel().height,
                               .stride = layer.stride().height,
                               .pad = layer.pad().height,
                               .loops = &loops};
  return std::make_unique<PassesKernel<Bf16Convolution, Bf16WeightsPass>>(request, problem,
                                                                          problem);
}

}  // namespace dtrain
