// Implements embedding on the GPU under the name "direct".
#include "framework/kernels/cuda/embedding_gradient.h"
#include "framework/kernels/cuda/rows.h"
#include "framework/nn/kernel.h"
#include "layers/embedding/embedding.h"

namespace dtrain {
namespace {

class EmbeddingCuda : public Kernel {
 public:
  explicit EmbeddingCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        vocabulary_(static_cast<const Embedding*>(request.layer)->vocabulary()),
        size_(static_cast<const Embedding*>(request.layer)->outputs()),
        tokens_(request.inputs[0].count()),
        gradient_(tokens_, vocabulary_, size_) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = gradient_.scratch_bytes();
    needs.backward_reads_inputs = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const DeviceMatrix w = DeviceMatrix::Dense(args.params[0].f32(), vocabulary_, size_);
    TakeRows(queue_, args.inputs[0].i32(), 1, w,
             DeviceMatrix::Dense(args.outputs[0].f32(), tokens_, size_));
  }

  void Backward(const KernelArgs& args) override {
    const DeviceMatrix dy = DeviceMatrix::Dense(args.output_gradients[0].f32(), tokens_, size_);
    gradient_.Write(queue_, args.inputs[0].i32(), dy, args.accumulate,
                    args.param_gradients[0].f32(), args.scratch);
  }

 private:
  CudaQueue& queue_;
  const int64_t vocabulary_, size_;
  const int64_t tokens_;  // tokens of the whole batch
  const EmbeddingGradientCuda gradient_;
};

std::unique_ptr<Kernel> MakeEmbeddingCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<EmbeddingCuda>(request);
}

DTRAIN_KERNEL("embedding", DeviceKind::kCuda, "direct", OfferPlain, MakeEmbeddingCuda);

}  // namespace
}  // namespace dtrain
