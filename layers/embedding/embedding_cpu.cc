// Implements embedding on the CPU under the name "direct".
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/nn/kernel.h"
#include "layers/embedding/embedding.h"

namespace dtrain {
namespace {

class EmbeddingDirect : public Kernel {
 public:
  explicit EmbeddingDirect(const KernelRequest& request)
      : vocabulary_(static_cast<const Embedding*>(request.layer)->vocabulary()),
        size_(static_cast<const Embedding*>(request.layer)->outputs()),
        tokens_(request.inputs[0]),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const int32_t* const tokens = args.inputs[0].i32();
    CheckTokens(tokens, tokens_, vocabulary_, args.first_position, args.step);
    const float* const w = args.params[0].f32();
    float* const y = args.outputs[0].f32();
    ParallelFor(device_.threads, tokens_.count(),
                [&](int64_t i) { std::copy_n(w + tokens[i] * size_, size_, y + i * size_); });
  }

  void Backward(const KernelArgs& args) override {
    const int32_t* const tokens = args.inputs[0].i32();
    const auto count = static_cast<size_t>(tokens_.count());
    const Matrix dy = Matrix::Dense(args.output_gradients[0].f32(), tokens_.count(), size_);
    EmbeddingGradient(device_.threads, {tokens, count}, dy, vocabulary_, args.accumulate,
                      args.param_gradients[0].f32());
  }

 private:
  const int64_t vocabulary_, size_;
  const Shape tokens_;
  const Device device_;
};

std::unique_ptr<Kernel> MakeEmbeddingDirect(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<EmbeddingDirect>(request);
}

DTRAIN_KERNEL("embedding", DeviceKind::kCpu, "direct", OfferPlain, MakeEmbeddingDirect);

}  // namespace
}  // namespace dtrain
