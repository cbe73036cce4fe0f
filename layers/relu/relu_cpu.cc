// ReLU on the CPU, implementation "direct": elementwise, in whatever format its input has.
#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/relu/relu_loops.h"

namespace dtrain {
namespace {

class ReluDirect : public Kernel {
 public:
  ReluDirect(const KernelRequest& request, const KernelOffer& offer)
      : count_(StoredCount(request.inputs[0], offer.inputs[0])), device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_outputs = true;
    needs.forward_in_place = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* x = args.inputs[0].f32();
    float* y = args.outputs[0].f32();
    ForEachSlice(device_.threads, count_, [&](Range r) {
      DTRAIN_ISA_SELECT(device_.isa, ReluForward)(x + r.begin, r.size(), y + r.begin);
    });
  }

  void Backward(const KernelArgs& args) override {
    const float* y = args.outputs[0].f32();
    const float* dy = args.output_gradients[0].f32();
    float* dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    ForEachSlice(device_.threads, count_, [&](Range r) {
      DTRAIN_ISA_SELECT(device_.isa, ReluBackward)
      (y + r.begin, dy + r.begin, r.size(), dx + r.begin);
    });
  }

 private:
  const int64_t count_;
  const Device device_;
};

std::optional<KernelOffer> OfferReluDirect(const KernelRequest& request) {
  if (request.device.kind != DeviceKind::kCpu || request.fused_relu) return std::nullopt;
  return FollowInput(request);
}

std::unique_ptr<Kernel> MakeReluDirect(const KernelRequest& request, const KernelOffer& offer) {
  return std::make_unique<ReluDirect>(request, offer);
}

DTRAIN_KERNEL("relu", "direct", OfferReluDirect, MakeReluDirect);

}  // namespace
}  // namespace dtrain
