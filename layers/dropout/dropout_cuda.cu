// Implements dropout on the GPU under the name "direct".  It draws the same masks as the CPU; Backward draws them
// again.
#include "framework/kernels/cuda/rows.h"
#include "framework/nn/kernel.h"
#include "layers/dropout/dropout.h"

namespace dtrain {
namespace {

void Drop(CudaQueue& queue, const StepValues* values, uint64_t layer_index, double ratio,
          const DeviceMatrix& x, const DeviceMatrix& y) {
  DropRows(
      queue, values, ratio,
      [=] DT_DEVICE(const StepValues& of, int64_t n) {
        return DropoutRandom(of.seed, layer_index, of.step, of.first_position + n);
      },
      x, y);
}

class DropoutCuda : public Kernel {
 public:
  explicit DropoutCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        dropout_(*static_cast<const Dropout*>(request.layer)),
        layer_index_(request.layer_index),
        shape_(request.inputs[0]),
        mode_(request.mode) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.forward_in_place = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float* const x = args.inputs[0].f32();
    float* const y = args.outputs[0].f32();
    if (mode_ == Mode::kTrain) return DropAll(args, x, y);
    if (x != y) queue_.Copy(y, x, static_cast<size_t>(shape_.count()) * sizeof(float));
  }

  void Backward(const KernelArgs& args) override {
    float* const dx = args.input_gradients[0].f32();
    if (dx != nullptr) DropAll(args, args.output_gradients[0].f32(), dx);
  }

 private:
  void DropAll(const KernelArgs& args, const float* from, float* to) const {
    const auto samples = [&](const float* data) {
      return DeviceMatrix::Dense(data, shape_[0], shape_.CountFrom(1));
    };
    Drop(queue_, args.values, layer_index_, dropout_.ratio(), samples(from), samples(to));
  }

  CudaQueue& queue_;
  const Dropout& dropout_;
  const uint64_t layer_index_;
  const Shape shape_;
  const Mode mode_;
};

std::unique_ptr<Kernel> MakeDropoutCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<DropoutCuda>(request);
}

DTRAIN_KERNEL("dropout", DeviceKind::kCuda, "direct", OfferPlain, MakeDropoutCuda);

}  // namespace
}  // namespace dtrain
