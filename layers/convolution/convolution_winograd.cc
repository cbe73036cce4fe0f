// Implements convolution on the CPU under the name "winograd", for 3 x 3 windows, stride 1 or (with pad 1) 2, and
// channels in multiples of sixteen (winograd_loops.h).
//
// It is two to three times as fast as a direct convolution if there are enough channels to hide the transforms, and it
// reads weights and writes their gradient in plain order, without packing.  Its rounding errors are about five times
// those of a direct sum, 1e-6 of the result's size.
//
// The offer depends only on the channels and the map's size, so training and evaluation choose the same kernel for any
// batch.

#include "framework/nn/kernel.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/passes_kernel.h"
#include "layers/convolution/winograd_passes.h"

namespace dtrain {
namespace {

WinogradProblem ForwardProblem(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Shape &x = request.inputs[0], &y = request.outputs[0];
  return {x[0], x[1], y[1], ForwardTiling(x, y, layer.stride().height, layer.pad().height)};
}

WinogradProblem DataProblem(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Shape &x = request.inputs[0], &y = request.outputs[0];
  return {y[0], y[1], x[1], DataTiling(x, y, layer.stride().height, layer.pad().height)};
}

std::optional<KernelOffer> OfferConvolutionWinograd(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  if (!layer.IsPlainSquare()) return std::nullopt;
  const int64_t stride = layer.stride().height, pad = layer.pad().height;
  const bool strided = stride == 2 && pad == 1;
  if (layer.kernel().height != 3 || pad > 2 || (stride != 1 && !strided)) return std::nullopt;
  if (layer.channels() % 16 != 0 || layer.outputs() % 16 != 0) return std::nullopt;
  KernelOffer offer;
  offer.inputs = {Format::kChannelsLast};
  offer.outputs = {Format::kChannelsLast};
  // With stride 2 the transforms read four times as many pixels per product, so more channels are needed to share them.
  const int64_t least = strided ? 256 : 32;
  const bool pays = layer.channels() >= least && layer.outputs() >= 32 &&
                    ShareOfDirect(ForwardProblem(request).tiling) <= 0.7;
  offer.preference = pays ? 20 : -20;
  return offer;
}

std::unique_ptr<Kernel> MakeConvolutionWinograd(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<PassesKernel<WinogradConvolution, WinogradWeightsPass>>(
      request, ForwardProblem(request), DataProblem(request));
}

DTRAIN_KERNEL("convolution", DeviceKind::kCpu, "winograd", OfferConvolutionWinograd,
              MakeConvolutionWinograd);

}  // namespace
}  // namespace dtrain
