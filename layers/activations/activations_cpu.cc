// Implements the activations on the CPU under the name "direct".  The kernel runs in whatever format the input has, and
// in place where the net allows it.
#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/activations/activations.h"

namespace dtrain {
namespace {

class ActivationDirect : public Kernel {
 public:
  ActivationDirect(const KernelRequest& request, const KernelOffer& offer)
      : layer_(*static_cast<const ActivationLayer*>(request.layer)),
        count_(StoredCount(request.inputs[0], offer.inputs[0].format)),
        training_(request.mode == Mode::kTrain),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = layer_.keeps_input();
    needs.backward_reads_outputs = !layer_.keeps_input();
    needs.forward_in_place = !layer_.keeps_input() || !training_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    float* const y = args.outputs[0].f32();
    const auto forward = DTRAIN_ISA_SELECT(device_.isa, ActivationForward);
    ForEachSlice(device_.threads, count_,
                 [&](Range r) { forward(layer_.function(), x + r.begin, r.size(), y + r.begin); });
  }

  void Backward(const KernelArgs& args) override {
    const float* const kept = (layer_.keeps_input() ? args.inputs : args.outputs)[0].f32();
    const float* const dy = args.output_gradients[0].f32();
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    const auto backward = DTRAIN_ISA_SELECT(device_.isa, ActivationBackward);
    ForEachSlice(device_.threads, count_, [&](Range r) {
      backward(layer_.function(), kept + r.begin, dy + r.begin, r.size(), dx + r.begin);
    });
  }

 private:
  const ActivationLayer& layer_;
  const int64_t count_;
  const bool training_;
  const Device device_;
};

std::unique_ptr<Kernel> MakeActivation(const KernelRequest& request, const KernelOffer& offer) {
  return std::make_unique<ActivationDirect>(request, offer);
}

[[maybe_unused]] const bool kernels_registered = [] {
  for (const char* type : kActivations) {
    KernelRegistry::Add(type, DeviceKind::kCpu, {"direct", OfferElementwise, MakeActivation});
  }
  return true;
}();

}  // namespace
}  // namespace dtrain
