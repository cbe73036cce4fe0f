// Eltwise on the CPU, implementation "direct": in whatever format the first input has.
#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/eltwise/eltwise_loops.h"

namespace dtrain {
namespace {

float* At(const Tensor& tensor, int64_t offset) {
  return tensor.data == nullptr ? nullptr : tensor.f32() + offset;
}

class EltwiseDirect : public Kernel {
 public:
  EltwiseDirect(const KernelRequest& request, const KernelOffer& offer)
      : count_(StoredCount(request.outputs[0], offer.outputs[0])),
        relu_(request.fused_relu),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_outputs = relu_;
    needs.forward_in_place = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    ForEachSlice(device_.threads, count_, [&](Range r) {
      DTRAIN_ISA_SELECT(device_.isa, SumForward)
      (At(args.inputs[0], r.begin), At(args.inputs[1], r.begin), r.size(), relu_,
       At(args.outputs[0], r.begin));
    });
  }

  void Backward(const KernelArgs& args) override {
    ForEachSlice(device_.threads, count_, [&](Range r) {
      DTRAIN_ISA_SELECT(device_.isa, SumBackward)
      (relu_ ? At(args.outputs[0], r.begin) : nullptr, At(args.output_gradients[0], r.begin),
       r.size(), At(args.input_gradients[0], r.begin), At(args.input_gradients[1], r.begin));
    });
  }

 private:
  const int64_t count_;
  const bool relu_;
  const Device device_;
};

std::unique_ptr<Kernel> MakeEltwiseDirect(const KernelRequest& request, const KernelOffer& offer) {
  return std::make_unique<EltwiseDirect>(request, offer);
}

DTRAIN_KERNEL("eltwise", DeviceKind::kCpu, "direct", FollowInput, MakeEltwiseDirect);

}  // namespace
}  // namespace dtrain
