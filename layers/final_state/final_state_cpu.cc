// Implements the final state on the CPU under the name "direct".
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "framework/nn/tokens.h"
#include "layers/final_state/final_state.h"

namespace dtrain {
namespace {

class FinalStateDirect : public Kernel {
 public:
  explicit FinalStateDirect(const KernelRequest& request)
      : layer_(*static_cast<const FinalState*>(request.layer)),
        batch_(request.inputs[0][0]),
        steps_(request.inputs[0][1]),
        width_(request.inputs[0][2]),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = true;  // the tokens
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    ParallelFor(device_.threads, batch_, [&](int64_t n) {
      const float* const x = args.inputs[0].f32() + n * steps_ * width_;
      float* const y = args.outputs[0].f32() + n * width_;
      std::copy_n(x + Last(args, n) * width_, forward_half(), y);
      std::copy(x + forward_half(), x + width_, y + forward_half());
    });
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    ParallelFor(device_.threads, batch_, [&](int64_t n) {
      float* const dx = args.input_gradients[0].f32() + n * steps_ * width_;
      const float* const dy = args.output_gradients[0].f32() + n * width_;
      std::fill_n(dx, steps_ * width_, 0.0f);
      std::copy_n(dy, forward_half(), dx + Last(args, n) * width_);
      std::copy(dy + forward_half(), dy + width_, dx + forward_half());
    });
  }

 private:
  int64_t forward_half() const { return layer_.bidirectional() ? width_ / 2 : width_; }
  int64_t Last(const KernelArgs& args, int64_t n) const {
    const int32_t* const tokens = args.inputs[1].i32() + n * steps_;
    return std::max<int64_t>(SentenceLength(tokens, steps_, layer_.pad()) - 1, 0);
  }

  const FinalState& layer_;
  const int64_t batch_, steps_, width_;
  const Device device_;
};

std::unique_ptr<Kernel> MakeFinalStateDirect(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<FinalStateDirect>(request);
}

DTRAIN_KERNEL("final_state", DeviceKind::kCpu, "direct", OfferPlain, MakeFinalStateDirect);

}  // namespace
}  // namespace dtrain
