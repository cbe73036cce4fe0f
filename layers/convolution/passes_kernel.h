// PassesKernel: a convolution kernel composed of passes over channels_last images, which run one after the other and
// share their scratch memory (winograd_passes.h, bf16_passes.h).
//
//   Pass         y = x * w, or, if `turned`, dx = dy * w
//   WeightsPass  dw from x and dy
#pragma once

#include <algorithm>

#include "framework/kernels/cpu/loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {

template <class Pass, class WeightsPass>
class PassesKernel : public Kernel {
 public:
  template <class Problem>
  PassesKernel(const KernelRequest& request, const Problem& forward, const Problem& data)
      : device_(request.device),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        y_(request.outputs[0]),
        forward_(forward, false, request.device),
        data_(data, true, request.device),
        weights_(forward, request.device) {}

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
      SumOverRows(device_, Matrix::Dense(dy, y_.count() / y_[1], y_[1]), args.accumulate,
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
  const Pass forward_;
  const Pass data_;
  const WeightsPass weights_;
};

}  // namespace dtrain
