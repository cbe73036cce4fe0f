// Implements dropout on the CPU under the name "direct".  Backward draws the mask again instead of
// saving it.
#include <cstring>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/nn/kernel.h"
#include "layers/dropout/dropout.h"

namespace dtrain {
namespace {

class DropoutDirect : public Kernel {
 public:
  explicit DropoutDirect(const KernelRequest& request)
      : dropout_(*static_cast<const Dropout*>(request.layer)),
        layer_index_(request.layer_index),
        shape_(request.inputs[0]),
        mode_(request.mode),
        device_(request.device) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.forward_in_place = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    if (mode_ == Mode::kTrain) return Drop(args, args.inputs[0].f32(), args.outputs[0].f32());
    if (args.outputs[0].data == args.inputs[0].data) return;
    std::memcpy(args.outputs[0].data, args.inputs[0].data, shape_.count() * sizeof(float));
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    Drop(args, args.output_gradients[0].f32(), args.input_gradients[0].f32());
  }

 private:
  void Drop(const KernelArgs& args, const float* from, float* to) const {
    const int64_t size = shape_.CountFrom(1);
    ParallelFor(device_.threads, shape_[0], [&](int64_t n) {
      const DropoutSample sample = SampleAt(args, args.first_position + n);
      DTRAIN_ISA_SELECT(device_.isa, DropElements)(sample, from + n * size, size, to + n * size);
    });
  }

  DropoutSample SampleAt(const KernelArgs& args, int64_t position) const {
    const Random random = DropoutRandom(args.seed, layer_index_, args.step, position);
    return SampleOf(random, dropout_.ratio());
  }

  const Dropout& dropout_;
  const uint64_t layer_index_;
  const Shape shape_;
  const Mode mode_;
  const Device device_;
};

std::unique_ptr<Kernel> MakeDropoutDirect(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<DropoutDirect>(request);
}

DTRAIN_KERNEL("dropout", DeviceKind::kCpu, "direct", OfferPlain, MakeDropoutDirect);

}  // namespace
}  // namespace dtrain
