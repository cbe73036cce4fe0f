// Implements accuracy on the GPU under the name "direct".
#include <cmath>

#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"
#include "layers/accuracy/accuracy.h"

namespace dtrain {
namespace {

// y[n] = 1 if fewer than `top_k` scores rank before the label's.  A NaN counts as `top_k` such scores, so its sample is
// wrong; so is a sample whose label is outside [0, classes).
void FindCorrect(CudaQueue& queue, const Tensor& scores, const Tensor& labels, int64_t top_k,
                 float* y) {
  const float* const all = scores.f32();
  const int32_t* const label = labels.i32();
  const int64_t samples = scores.shape[0], classes = scores.shape[1];
  ForEachRow(
      queue,
      {"accuracy", {Reads(all, samples * classes), Reads(label, samples), Writes(y, samples)}},
      samples, classes, int64_t{0},
      [=] DT_DEVICE(int64_t n, int64_t c) -> int64_t {
        const float* const x = all + n * classes;
        if (classes == 1) return IsRightAnswer(*x, label[n]) ? 0 : top_k;
        if (label[n] < 0 || label[n] >= classes || std::isnan(x[c])) return top_k;
        return x[c] > x[label[n]] || (x[c] == x[label[n]] && c < label[n]) ? 1 : 0;
      },
      [] DT_DEVICE(int64_t a, int64_t b) { return a + b; },
      [=] DT_DEVICE(int64_t n, int64_t before) { y[n] = before < top_k ? 1 : 0; });
}

class AccuracyCuda : public Kernel {
 public:
  explicit AccuracyCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        top_k_(static_cast<const Accuracy*>(request.layer)->top_k()) {}

  void Forward(const KernelArgs& args) override {
    FindCorrect(queue_, args.inputs[0], args.inputs[1], top_k_, args.outputs[0].f32());
  }

  void Backward(const KernelArgs&) override {}  // a count has no gradient

 private:
  CudaQueue& queue_;
  const int64_t top_k_;
};

std::unique_ptr<Kernel> MakeAccuracyCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<AccuracyCuda>(request);
}

DTRAIN_KERNEL("accuracy", DeviceKind::kCuda, "direct", OfferPlain, MakeAccuracyCuda);

}  // namespace
}  // namespace dtrain
