// Eltwise on the GPU, implementation "direct": in whatever format the first input has.
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

class EltwiseCuda : public Kernel {
 public:
  explicit EltwiseCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        count_(request.outputs[0].count()),
        relu_(request.fused_relu) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_outputs = relu_;
    needs.forward_in_place = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float *const a = args.inputs[0].f32(), *const b = args.inputs[1].f32();
    float* const y = args.outputs[0].f32();
    const bool relu = relu_;
    ForEach(queue_, count_, [=] DT_DEVICE(int64_t i) {
      const float sum = a[i] + b[i];
      y[i] = relu && sum < 0 ? 0 : sum;  // keeps a NaN
    });
  }

  // Both in one pass: da may be dy.
  void Backward(const KernelArgs& args) override {
    const float* const y = relu_ ? args.outputs[0].f32() : nullptr;
    const float* const dy = args.output_gradients[0].f32();
    float *const da = args.input_gradients[0].f32(), *const db = args.input_gradients[1].f32();
    if (da == nullptr && db == nullptr) return;
    ForEach(queue_, count_, [=] DT_DEVICE(int64_t i) {
      const float gradient = y == nullptr || y[i] > 0 ? dy[i] : 0;
      if (da != nullptr) da[i] = gradient;
      if (db != nullptr) db[i] = gradient;
    });
  }

 private:
  CudaQueue& queue_;
  const int64_t count_;
  const bool relu_;
};

std::unique_ptr<Kernel> MakeEltwiseCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<EltwiseCuda>(request);
}

DTRAIN_KERNEL("eltwise", DeviceKind::kCuda, "direct", FollowInput, MakeEltwiseCuda);

}  // namespace
}  // namespace dtrain
