// Implements the GPU kernel of losses that are the mean of a term over a sample's elements (nn/element_loss.h).  The
// layer defines the term (kernels/cpu/element_loss.h).
#pragma once

#include "framework/kernels/cuda/loops.h"
#include "framework/nn/element_loss.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// Register it with OfferPlain: all tensors must be row-major.
template <class Term>
class ElementLossCuda : public Kernel {
 public:
  explicit ElementLossCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        batch_(request.inputs[0][0]),
        elements_(request.inputs[0].CountFrom(1)) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const Targets targets(args.inputs[0], args.inputs[1]);
    const float* const x = args.inputs[0].f32();
    float* const y = args.outputs[0].f32();
    const int64_t elements = elements_;
    ForEachRow(
        queue_, {"loss", {Reads(x, batch_ * elements_), ReadsTarget(args), Writes(y, batch_)}},
        batch_, elements, 0.0,
        [=] DT_DEVICE(int64_t n, int64_t column) -> double {
          const int64_t i = n * elements + column;
          return Term::Loss(x[i], targets.At(i));
        },
        [] DT_DEVICE(double a, double b) { return a + b; },
        [=] DT_DEVICE(int64_t n, double sum) {
          y[n] = static_cast<float>(sum / static_cast<double>(elements));
        });
  }

  void Backward(const KernelArgs& args) override {
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    const Targets targets(args.inputs[0], args.inputs[1]);
    const float* const x = args.inputs[0].f32();
    const StepValues* const values = args.values;
    const auto elements = static_cast<float>(elements_);
    const int64_t count = batch_ * elements_;
    ForEach(queue_,
            {"loss gradient",
             {Reads(values, 1), Reads(x, count), ReadsTarget(args), Writes(dx, count)}},
            count, [=] DT_DEVICE(int64_t i) {
              const float share = values->loss_scale / elements;
              dx[i] = share * Term::Gradient(x[i], targets.At(i));
            });
  }

 private:
  static Access ReadsTarget(const KernelArgs& args) {
    const Tensor& target = args.inputs[1];
    return target.dtype == DType::kI32 ? Reads(target.i32(), target.shape.count())
                                       : Reads(target.f32(), target.shape.count());
  }

  CudaQueue& queue_;
  const int64_t batch_, elements_;
};

}  // namespace dtrain
