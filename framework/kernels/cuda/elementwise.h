// The kernel of layers that are a function of each element (relu, tanh) on the GPU: in whatever
// format the input has, in place where the net likes.  The layer's folder brings two functions of an
// element:
//
//   struct Function {
//     static DT_DEVICE float Forward(float x);
//     static DT_DEVICE float Backward(float y, float dy);
//   };
#pragma once

#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {

template <class Function>
class ElementwiseCuda : public Kernel {
 public:
  explicit ElementwiseCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)), count_(request.inputs[0].count()) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_outputs = true;
    needs.forward_in_place = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    float* const y = args.outputs[0].f32();
    ForEach(queue_, count_, [=] DT_DEVICE(int64_t i) { y[i] = Function::Forward(x[i]); });
  }

  void Backward(const KernelArgs& args) override {
    const float* const y = args.outputs[0].f32();
    const float* const dy = args.output_gradients[0].f32();
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    ForEach(queue_, count_, [=] DT_DEVICE(int64_t i) { dx[i] = Function::Backward(y[i], dy[i]); });
  }

 private:
  CudaQueue& queue_;
  const int64_t count_;
};

}  // namespace dtrain
