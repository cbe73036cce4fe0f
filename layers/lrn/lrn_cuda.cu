// Implements LRN on the GPU under the name "direct", for plain tensors, with one thread per element.  Forward saves
// `scale` for Backward, whose scratch memory holds the ratios.
#include <cmath>

#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"
#include "layers/lrn/lrn.h"

namespace dtrain {
namespace {

struct Channels {
  LrnFactors factors;
  int64_t channels, plane;

  // Returns the sum of value(j) over element i's pixel in the channels around i's channel.
  template <class Value>
  DT_DEVICE float SumNear(int64_t i, Value value) const {
    const int64_t c = i / plane % channels;
    const int64_t below = c < factors.reach ? c : factors.reach;
    const int64_t above = channels - 1 - c < factors.reach ? channels - 1 - c : factors.reach;
    float sum = 0;
    for (int64_t j = i - below * plane; j <= i + above * plane; j += plane) sum += value(j);
    return sum;
  }
};

void Normalise(CudaQueue& queue, const Channels& of, int64_t count, const float* x, float* scale,
               float* y) {
  ForEach(queue, {"lrn", {Reads(x, count), Writes(scale, count), Writes(y, count)}}, count,
          [=] DT_DEVICE(int64_t i) {
            const float sum = of.SumNear(i, [x](int64_t j) { return x[j] * x[j]; });
            const float by = of.factors.k + of.factors.share * sum;
            if (scale != nullptr) scale[i] = by;
            y[i] = x[i] * powf(by, -of.factors.beta);
          });
}

// dx may be dy, because `ratio` holds what an element needs of the other channels.
void FindGradients(CudaQueue& queue, const Channels& of, int64_t count, const float* x,
                   const float* scale, const float* dy, float* ratio, float* dx) {
  ForEach(queue,
          {"lrn ratios",
           {Reads(x, count), Reads(scale, count), Reads(dy, count), Writes(ratio, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            ratio[i] = dy[i] * x[i] * powf(scale[i], -of.factors.beta) / scale[i];
          });
  const float factor = 2 * of.factors.share * of.factors.beta;
  ForEach(queue,
          {"lrn gradient",
           {Reads(x, count), Reads(scale, count), Reads(dy, count), Reads(ratio, count),
            Writes(dx, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const float sum = of.SumNear(i, [ratio](int64_t j) { return ratio[j]; });
            dx[i] = dy[i] * powf(scale[i], -of.factors.beta) - factor * x[i] * sum;
          });
}

class LrnCuda : public Kernel {
 public:
  explicit LrnCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        channels_{static_cast<const Lrn*>(request.layer)->factors(), request.inputs[0][1],
                  request.inputs[0].CountFrom(2)},
        count_(request.inputs[0].count()),
        training_(request.mode == Mode::kTrain) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (training_) {
      needs.saved_bytes = needs.scratch_bytes = static_cast<size_t>(count_) * sizeof(float);
    }
    needs.backward_reads_inputs = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    Normalise(queue_, channels_, count_, args.inputs[0].f32(),
              training_ ? static_cast<float*>(args.saved) : nullptr, args.outputs[0].f32());
  }

  void Backward(const KernelArgs& args) override {
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    FindGradients(queue_, channels_, count_, args.inputs[0].f32(),
                  static_cast<const float*>(args.saved), args.output_gradients[0].f32(),
                  static_cast<float*>(args.scratch), dx);
  }

 private:
  CudaQueue& queue_;
  const Channels channels_;
  const int64_t count_;
  const bool training_;
};

std::unique_ptr<Kernel> MakeLrnCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<LrnCuda>(request);
}

DTRAIN_KERNEL("lrn", DeviceKind::kCuda, "direct", OfferPlain, MakeLrnCuda);

}  // namespace
}  // namespace dtrain
