// Embedding on the CPU, implementation "direct".  The gradient is summed in the order of the
// tokens; threads share out the vocabulary, so its bits do not depend on their number.
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "framework/nn/tokens.h"
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
    const float* const dy = args.output_gradients[0].f32();
    float* const dw = args.param_gradients[0].f32();
    RunTeam(device_.threads, [&](int thread, int team) {
      const Range mine = SplitEvenly({0, vocabulary_}, team, thread);
      if (!args.accumulate) std::fill(dw + mine.begin * size_, dw + mine.end * size_, 0.0f);
      for (int64_t i = 0; i < tokens_.count(); ++i) {
        if (tokens[i] < mine.begin || tokens[i] >= mine.end) continue;
        float* const to = dw + tokens[i] * size_;
        for (int64_t j = 0; j < size_; ++j) to[j] += dy[i * size_ + j];
      }
    });
  }

 private:
  const int64_t vocabulary_, size_;
  const Shape tokens_;
  const Device device_;
};

std::optional<KernelOffer> OfferEmbeddingDirect(const KernelRequest& request) {
  if (request.device.kind != DeviceKind::kCpu || request.fused_relu) return std::nullopt;
  return AllPlain(request);
}

std::unique_ptr<Kernel> MakeEmbeddingDirect(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<EmbeddingDirect>(request);
}

DTRAIN_KERNEL("embedding", "direct", OfferEmbeddingDirect, MakeEmbeddingDirect);

}  // namespace
}  // namespace dtrain
