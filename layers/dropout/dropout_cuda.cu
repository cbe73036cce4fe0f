// Dropout on the GPU, implementation "direct": draws the CPU's masks, again in backward.
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"
#include "layers/dropout/dropout.h"

namespace dtrain {
namespace {

// What decides about the elements of a batch.
struct DropoutBatch {
  uint64_t seed, layer_index, step;
  int64_t first_position;
  uint32_t threshold;
  float scale;
};

// y = x where the mask keeps it, scaled; else 0.  y may be x.  Each index makes one block of random
// numbers, four words, for as many elements of a sample.
void Drop(CudaQueue& queue, const DropoutBatch& batch, const Shape& shape, const float* x,
          float* y) {
  const int64_t size = shape.CountFrom(1);
  const int64_t blocks = (size + 3) / 4;
  ForEach(queue, shape[0] * blocks, [=] DT_DEVICE(int64_t i) {
    const int64_t n = i / blocks, block = i % blocks;
    const Random random =
        DropoutRandom(batch.seed, batch.layer_index, batch.step, batch.first_position + n);
    const auto words = random.Block(static_cast<uint64_t>(block));
    for (int k = 0; k < 4; ++k) {
      if (block * 4 + k >= size) return;
      const int64_t at = n * size + block * 4 + k;
      y[at] = words[k] < batch.threshold ? 0 : batch.scale * x[at];
    }
  });
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
    if (mode_ == Mode::kTrain) return Drop(queue_, BatchOf(args), shape_, x, y);
    if (x == y) return;
    DT_CUDA(cudaMemcpyAsync, y, x, static_cast<size_t>(shape_.count()) * sizeof(float),
            cudaMemcpyDeviceToDevice, queue_.stream());
  }

  void Backward(const KernelArgs& args) override {
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    Drop(queue_, BatchOf(args), shape_, args.output_gradients[0].f32(), dx);
  }

 private:
  DropoutBatch BatchOf(const KernelArgs& args) const {
    return {
        args.seed,           layer_index_,         args.step,
        args.first_position, dropout_.threshold(), static_cast<float>(1 / (1 - dropout_.ratio()))};
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
