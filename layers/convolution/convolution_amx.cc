// Convolution on the CPU, implementation "amx": with `precision: bf16`, on a CPU with AMX, for
// channels in multiples of 32 (bf16_loops.h).
//
// Only the factors of products are bf16; sums, and all that is kept, are fp32.  The rule looks at
// channels, precision and CPU only, so training and evaluation of any batch choose alike.

#include "framework/device/cpu/amx.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/bf16_passes.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/passes_kernel.h"

namespace dtrain {
namespace {

Bf16Problem ProblemOf(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  return {.x = request.inputs[0],
          .y = request.outputs[0],
          .kernel = layer.kernel(),
          .stride = layer.stride(),
          .pad = layer.pad()};
}

std::optional<KernelOffer> OfferConvolutionAmx(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Device& device = request.device;
  if (device.kind != DeviceKind::kCpu || device.precision != Precision::kBf16) return std::nullopt;
  if (device.isa != Isa::kAvx512 || !AmxAvailable()) return std::nullopt;
  if (layer.channels() % kBf16Block != 0 || layer.outputs() % kBf16Block != 0) return std::nullopt;
  KernelOffer offer;
  offer.inputs = {Format::kChannelsLast};
  offer.outputs = {Format::kChannelsLast};
  offer.preference = 40;
  return offer;
}

std::unique_ptr<Kernel> MakeConvolutionAmx(const KernelRequest& request, const KernelOffer&) {
  const Bf16Problem problem = ProblemOf(request);
  return std::make_unique<PassesKernel<Bf16Convolution, Bf16WeightsPass>>(request, problem,
                                                                          problem);
}

DTRAIN_KERNEL("convolution", "amx", OfferConvolutionAmx, MakeConvolutionAmx);

}  // namespace
}  // namespace dtrain
