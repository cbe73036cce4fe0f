// Implements the final state on the GPU under the name "direct".
#include "framework/kernels/cuda/rows.h"
#include "framework/nn/kernel.h"
#include "layers/final_state/final_state.h"

namespace dtrain {
namespace {

// Returns the step of a sentence's last token, or 0 if the sentence is empty.
DT_DEVICE int64_t LastStep(int32_t length) { return length > 0 ? length - 1 : 0; }

// Elements j < half are taken from the state at the last token, the others from the state at the first token.
void TakeStates(CudaQueue& queue, const Shape& shape, int64_t half, const int32_t* lengths,
                const float* x, float* y) {
  const int64_t steps = shape[1], width = shape[2], count = shape[0] * width;
  ForEach(queue,
          {"final state",
           {Reads(lengths, shape[0]), Reads(x, shape.count()).Only(count), Writes(y, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const int64_t n = i / width, j = i % width;
            const int64_t step = j < half ? LastStep(lengths[n]) : 0;
            y[i] = x[(n * steps + step) * width + j];
          });
}

void ReturnGradients(CudaQueue& queue, const Shape& shape, int64_t half, const int32_t* lengths,
                     const float* dy, float* dx) {
  const int64_t steps = shape[1], width = shape[2];
  ForEach(queue,
          {"final state gradient",
           {Reads(lengths, shape[0]), Reads(dy, shape[0] * width), Writes(dx, shape.count())}},
          shape.count(), [=] DT_DEVICE(int64_t i) {
            const int64_t n = i / (steps * width), step = i / width % steps, j = i % width;
            const bool is_final = step == (j < half ? LastStep(lengths[n]) : 0);
            dx[i] = is_final ? dy[n * width + j] : 0;
          });
}

// Adds the gradients to what another reader of x has written: to the states that were taken, and no others.
void AddToTakenStates(CudaQueue& queue, const Shape& shape, int64_t half, const int32_t* lengths,
                      const float* dy, float* dx) {
  const int64_t steps = shape[1], width = shape[2], count = shape[0] * width;
  ForEach(queue,
          {"final state gradient",
           {Reads(lengths, shape[0]), Reads(dy, count), Updates(dx, shape.count()).Only(count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const int64_t n = i / width, j = i % width;
            const int64_t step = j < half ? LastStep(lengths[n]) : 0;
            dx[(n * steps + step) * width + j] += dy[i];
          });
}

class FinalStateCuda : public Kernel {
 public:
  explicit FinalStateCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        shape_(request.inputs[0]),
        pad_(static_cast<const FinalState*>(request.layer)->pad()),
        half_(static_cast<const FinalState*>(request.layer)->bidirectional() ? shape_[2] / 2
                                                                             : shape_[2]) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = static_cast<size_t>(shape_[0]) * sizeof(int32_t);
    needs.backward_reads_inputs = true;  // the tokens
    needs.backward_adds = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    TakeStates(queue_, shape_, half_, LengthsOf(args), args.inputs[0].f32(), args.outputs[0].f32());
  }

  void Backward(const KernelArgs& args) override {
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    const auto submit = args.adds_input_gradient ? AddToTakenStates : ReturnGradients;
    submit(queue_, shape_, half_, LengthsOf(args), args.output_gradients[0].f32(), dx);
  }

 private:
  const int32_t* LengthsOf(const KernelArgs& args) const {
    auto* const lengths = static_cast<int32_t*>(args.scratch);
    FindLengths(queue_, args.inputs[1].i32(), shape_[0], shape_[1], pad_, lengths);
    return lengths;
  }

  CudaQueue& queue_;
  const Shape shape_;  // [N, T, width]
  const int64_t pad_;
  const int64_t half_;  // elements of the forward direction
};

std::unique_ptr<Kernel> MakeFinalStateCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<FinalStateCuda>(request);
}

DTRAIN_KERNEL("final_state", DeviceKind::kCuda, "direct", OfferPlain, MakeFinalStateCuda);

}  // namespace
}  // namespace dtrain
