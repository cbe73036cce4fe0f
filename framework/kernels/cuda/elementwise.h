// Implements the GPU kernel of layers that apply one function to each element (relu, gelu).  It runs in whatever format
// the input has, and in place where the net allows it.  The layer's folder supplies the two functions of an element;
// the struct holds the layer's settings that they need:
//
//   struct Function {
//     static constexpr bool kKeepsInput = false;    // Backward's `kept` is x if true, else y
//     DT_DEVICE float Forward(float x) const;
//     DT_DEVICE float Backward(float kept, float dy) const;
//   };
#pragma once

#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {

template <class Function>
class ElementwiseCuda : public Kernel {
 public:
  explicit ElementwiseCuda(const KernelRequest& request, const Function& function = {})
      : queue_(QueueOf(request.device)),
        function_(function),
        count_(request.inputs[0].count()),
        training_(request.mode == Mode::kTrain) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = Function::kKeepsInput;
    needs.backward_reads_outputs = !Function::kKeepsInput;
    needs.forward_in_place = !Function::kKeepsInput || !training_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    float* const y = args.outputs[0].f32();
    const Function function = function_;
    ForEach(queue_, count_, [=] DT_DEVICE(int64_t i) { y[i] = function.Forward(x[i]); });
  }

  void Backward(const KernelArgs& args) override {
    const float* const kept = (Function::kKeepsInput ? args.inputs : args.outputs)[0].f32();
    const float* const dy = args.output_gradients[0].f32();
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    const Function function = function_;
    ForEach(queue_, count_,
            [=] DT_DEVICE(int64_t i) { dx[i] = function.Backward(kept[i], dy[i]); });
  }

 private:
  CudaQueue& queue_;
  const Function function_;
  const int64_t count_;
  const bool training_;
};

}  // namespace dtrain
