#include "framework/kernels/cpu/elementwise_kernel.h"

#include "framework/device/cpu/parallel.h"

namespace dtrain {
namespace {

class ElementwiseKernel : public Kernel {
 public:
  ElementwiseKernel(const KernelRequest& request, const KernelOffer& offer,
                    const ElementwiseLoops& loops)
      : count_(StoredCount(request.inputs[0], offer.inputs[0])),
        threads_(request.device.threads),
        keeps_input_(loops.keeps == ElementwiseKeeps::kInput),
        training_(request.mode == Mode::kTrain),
        loops_(loops) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = keeps_input_;
    needs.backward_reads_outputs = !keeps_input_;
    needs.forward_in_place = !keeps_input_ || !training_;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    float* const y = args.outputs[0].f32();
    ForEachSlice(threads_, count_,
                 [&](Range r) { loops_.forward(x + r.begin, r.size(), y + r.begin); });
  }

  void Backward(const KernelArgs& args) override {
    const float* const kept = (keeps_input_ ? args.inputs : args.outputs)[0].f32();
    const float* const dy = args.output_gradients[0].f32();
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    ForEachSlice(threads_, count_, [&](Range r) {
      loops_.backward(kept + r.begin, dy + r.begin, r.size(), dx + r.begin);
    });
  }

 private:
  const int64_t count_;
  const int threads_;
  const bool keeps_input_, training_;
  const ElementwiseLoops loops_;
};

}  // namespace

std::unique_ptr<Kernel> MakeElementwise(const KernelRequest& request, const KernelOffer& offer,
                                        const ElementwiseLoops& loops) {
  return std::make_unique<ElementwiseKernel>(request, offer, loops);
}

}  // namespace dtrain
