// Tanh on the CPU, implementation "direct": in whatever format the input has.
#include "framework/device/cpu/parallel.h"
#include "framework/device/cpu/row_loops.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

class TanhDirect : public Kernel {
 public:
  TanhDirect(const KernelRequest& request, const KernelOffer& offer)
      : count_(StoredCount(request.outputs[0], offer.outputs[0])), device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_outputs = true;
    needs.forward_in_place = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    ForEachSlice(device_.threads, count_, [&](Range r) {
      DTRAIN_ISA_SELECT(device_.isa, TanhForward)
      (args.inputs[0].f32() + r.begin, r.size(), args.outputs[0].f32() + r.begin);
    });
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    ForEachSlice(device_.threads, count_, [&](Range r) {
      DTRAIN_ISA_SELECT(device_.isa, TanhBackward)
      (args.outputs[0].f32() + r.begin, args.output_gradients[0].f32() + r.begin, r.size(),
       args.input_gradients[0].f32() + r.begin);
    });
  }

 private:
  const int64_t count_;
  const Device device_;
};

std::optional<KernelOffer> OfferTanhDirect(const KernelRequest& request) {
  if (request.device.kind != DeviceKind::kCpu || request.fused_relu) return std::nullopt;
  return FollowInput(request);
}

std::unique_ptr<Kernel> MakeTanhDirect(const KernelRequest& request, const KernelOffer& offer) {
  return std::make_unique<TanhDirect>(request, offer);
}

DTRAIN_KERNEL("tanh", "direct", OfferTanhDirect, MakeTanhDirect);

}  // namespace
}  // namespace dtrain
