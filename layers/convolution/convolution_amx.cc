// Convolution on the CPU, implementation "amx": with `precision: bf16`, on a CPU with AMX, for
// channels in multiples of 32 (bf16_loops.h).
//
// Only the factors of products are bf16; sums, and all that is kept, are fp32.  The rule looks at
// channels, precision and CPU only, so training and evaluation of any batch choose alike.
#include <algorithm>

#include "framework/device/cpu/amx.h"
#include "framework/device/cpu/row_loops.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/bf16_passes.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/mask_gradient.h"

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

class ConvolutionAmx : public Kernel {
 public:
  explicit ConvolutionAmx(const KernelRequest& request)
      : device_(request.device),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        y_(request.outputs[0]),
        forward_(ProblemOf(request), false, request.device),
        data_(ProblemOf(request), true, request.device),
        weights_(ProblemOf(request), request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = forward_.ScratchBytes();
    if (training_) {
      needs.scratch_bytes =
          std::max({needs.scratch_bytes, data_.ScratchBytes(), weights_.ScratchBytes()});
    }
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const bias = args.params.size() > 1 ? args.params[1].f32() : nullptr;
    forward_.Run(args.inputs[0].f32(), args.params[0].f32(), bias, relu_, args.outputs[0].f32(),
                 args.scratch);
  }

  void Backward(const KernelArgs& args) override {
    float* const dy = args.output_gradients[0].f32();
    if (relu_) MaskGradient(device_.threads, y_.count(), args.outputs[0].f32(), dy);
    if (args.params.size() > 1) {
      SumOverRows(device_, dy, y_[1], y_.count() / y_[1], y_[1], args.accumulate,
                  args.param_gradients[1].f32());
    }
    weights_.Run(args.inputs[0].f32(), dy, args.accumulate, args.param_gradients[0].f32(),
                 args.scratch);
    if (args.input_gradients[0].data == nullptr) return;
    data_.Run(dy, args.params[0].f32(), nullptr, false, args.input_gradients[0].f32(),
              args.scratch);
  }

 private:
  const Device device_;
  const bool relu_;
  const bool training_;
  const Shape y_;
  const Bf16Convolution forward_;
  const Bf16Convolution data_;
  const Bf16WeightsPass weights_;
};

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
  return std::make_unique<ConvolutionAmx>(request);
}

DTRAIN_KERNEL("convolution", "amx", OfferConvolutionAmx, MakeConvolutionAmx);

}  // namespace
}  // namespace dtrain
