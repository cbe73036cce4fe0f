// Implements accuracy on the CPU under the name "direct".
#include <cmath>

#include "framework/nn/kernel.h"
#include "layers/accuracy/accuracy.h"

namespace dtrain {
namespace {

bool IsCorrect(const float* x, int64_t classes, int32_t label, int64_t top_k) {
  if (classes == 1) return IsRightAnswer(*x, label);
  if (label < 0 || label >= classes) return false;
  int64_t before = 0;
  bool has_nan = false;
  for (int64_t c = 0; c < classes; ++c) {
    has_nan |= std::isnan(x[c]);
    before += x[c] > x[label] || (x[c] == x[label] && c < label) ? 1 : 0;
  }
  return before < top_k && !has_nan;
}

class AccuracyDirect : public Kernel {
 public:
  explicit AccuracyDirect(const KernelRequest& request)
      : batch_(request.inputs[0][0]),
        classes_(request.inputs[0][1]),
        top_k_(static_cast<const Accuracy&>(*request.layer).top_k()) {}

  void Forward(const KernelArgs& args) override {
    for (int64_t n = 0; n < batch_; ++n) {
      const float* x = args.inputs[0].f32() + n * classes_;
      const bool right = IsCorrect(x, classes_, args.inputs[1].i32()[n], top_k_);
      args.outputs[0].f32()[n] = right ? 1.0f : 0.0f;
    }
  }

  void Backward(const KernelArgs&) override {}  // a count has no gradient

 private:
  const int64_t batch_, classes_, top_k_;
};

std::unique_ptr<Kernel> MakeAccuracyDirect(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<AccuracyDirect>(request);
}

DTRAIN_KERNEL("accuracy", DeviceKind::kCpu, "direct", OfferPlain, MakeAccuracyDirect);

}  // namespace
}  // namespace dtrain
