// Convolution on the CPU, implementation "winograd": a window of three, stride 1 or (with pad 1) 2,
// channels in multiples of sixteen (winograd_loops.h).
//
// Two to three times as fast as a direct convolution where there are channels enough to hide the
// transforms, and it reads and writes weights and their gradient in plain order: nothing is packed.
// Its rounding errors are about five times those of a direct sum, 1e-6 of the result's size.
//
// The rule looks at channels and map only, so training and evaluation of any batch choose alike.
#include <algorithm>

#include "framework/nn/kernel.h"
#include "layers/convolution/bias_gradient.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/mask_gradient.h"
#include "layers/convolution/winograd_passes.h"

namespace dtrain {
namespace {

WinogradProblem ForwardProblem(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Shape &x = request.inputs[0], &y = request.outputs[0];
  return {x[0], x[1], y[1], ForwardTiling(x, y, layer.stride(), layer.pad())};
}

WinogradProblem DataProblem(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Shape &x = request.inputs[0], &y = request.outputs[0];
  return {y[0], y[1], x[1], DataTiling(x, y, layer.stride(), layer.pad())};
}

class ConvolutionWinograd : public Kernel {
 public:
  explicit ConvolutionWinograd(const KernelRequest& request)
      : device_(request.device),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        y_(request.outputs[0]),
        forward_(ForwardProblem(request), false, request.device),
        data_(DataProblem(request), true, request.device),
        weights_(ForwardProblem(request), request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    int64_t floats = forward_.ScratchFloats();
    if (training_) floats = std::max({floats, data_.ScratchFloats(), weights_.ScratchFloats()});
    needs.scratch_bytes = static_cast<size_t>(floats) * sizeof(float);
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const bias = args.params.size() > 1 ? args.params[1].f32() : nullptr;
    forward_.Run(args.inputs[0].f32(), args.params[0].f32(), bias, relu_, args.outputs[0].f32(),
                 static_cast<float*>(args.scratch));
  }

  void Backward(const KernelArgs& args) override {
    float* const dy = args.output_gradients[0].f32();
    if (relu_) MaskGradient(device_.threads, y_.count(), args.outputs[0].f32(), dy);
    if (args.params.size() > 1) {
      SumBias(device_.threads, y_, dy, args.accumulate, args.param_gradients[1].f32());
    }
    weights_.Run(args.inputs[0].f32(), dy, args.accumulate, args.param_gradients[0].f32(),
                 static_cast<float*>(args.scratch));
    if (args.input_gradients[0].data == nullptr) return;
    data_.Run(dy, args.params[0].f32(), nullptr, false, args.input_gradients[0].f32(),
              static_cast<float*>(args.scratch));
  }

 private:
  const Device device_;
  const bool relu_;
  const bool training_;
  const Shape y_;
  const WinogradConvolution forward_;
  const WinogradConvolution data_;
  const WinogradWeightsPass weights_;
};

std::optional<KernelOffer> OfferConvolutionWinograd(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  if (request.device.kind != DeviceKind::kCpu) return std::nullopt;
  const bool strided = layer.stride() == 2 && layer.pad() == 1;
  if (layer.kernel() != 3 || layer.pad() > 2 || (layer.stride() != 1 && !strided)) {
    return std::nullopt;
  }
  if (layer.channels() % 16 != 0 || layer.outputs() % 16 != 0) return std::nullopt;
  KernelOffer offer;
  offer.inputs = {Format::kChannelsLast};
  offer.outputs = {Format::kChannelsLast};
  // With stride 2 the transforms touch four times as many pixels for a product: more channels must
  // share them.
  const int64_t least = strided ? 256 : 32;
  const bool pays = layer.channels() >= least && layer.outputs() >= 32 &&
                    ShareOfDirect(ForwardProblem(request).tiling) <= 0.7;
  offer.preference = pays ? 20 : -20;
  return offer;
}

std::unique_ptr<Kernel> MakeConvolutionWinograd(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ConvolutionWinograd>(request);
}

DTRAIN_KERNEL("convolution", "winograd", OfferConvolutionWinograd, MakeConvolutionWinograd);

}  // namespace
}  // namespace dtrain
