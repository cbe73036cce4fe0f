// Implements the CPU kernel of losses that are the mean of a term over a sample's elements (nn/element_loss.h).  The
// layer defines the term once, for this kernel and for the GPU's (kernels/cuda/element_loss.h):
//
//   struct Term {
//     static DT_DEVICE float Loss(float x, float target);
//     static DT_DEVICE float Gradient(float x, float target);    // derivative by x
//   };
#pragma once

#include "framework/device/cpu/parallel.h"
#include "framework/nn/element_loss.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// Register it with OfferPlain: all tensors must be row-major.
template <class Term>
class ElementLossCpu : public Kernel {
 public:
  explicit ElementLossCpu(const KernelRequest& request)
      : layer_(static_cast<const ElementLoss&>(*request.layer)),
        batch_(request.inputs[0][0]),
        elements_(request.inputs[0].CountFrom(1)),
        threads_(request.inputs[0].count() < kSliceMin ? 1 : request.device.threads) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    layer_.CheckTargets(args.inputs[0], args.inputs[1], args.first_position, args.step);
    const Targets targets(args.inputs[0], args.inputs[1]);
    const float* const x = args.inputs[0].f32();
    ParallelFor(threads_, batch_, [&](int64_t n) {
      double sum = 0;
      for (int64_t i = n * elements_; i < (n + 1) * elements_; ++i) {
        sum += Term::Loss(x[i], targets.At(i));
      }
      args.outputs[0].f32()[n] = static_cast<float>(sum / static_cast<double>(elements_));
    });
  }

  void Backward(const KernelArgs& args) override {
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    const Targets targets(args.inputs[0], args.inputs[1]);
    const float* const x = args.inputs[0].f32();
    const float share = args.loss_scale / static_cast<float>(elements_);
    ForEachSlice(threads_, batch_ * elements_, [&](Range slice) {
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        dx[i] = share * Term::Gradient(x[i], targets.At(i));
      }
    });
  }

 private:
  const ElementLoss& layer_;
  const int64_t batch_, elements_;
  const int threads_;
};

}  // namespace dtrain
