// Softmax cross-entropy on the CPU, implementation "direct".  Keeps the probabilities for backward.
#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

class SoftmaxCrossEntropyDirect : public Kernel {
 public:
  explicit SoftmaxCrossEntropyDirect(const KernelRequest& request)
      : batch_(request.inputs[0][0]), classes_(request.inputs[0][1]), mode_(request.mode) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (mode_ == Mode::kTrain) needs.saved_bytes = batch_ * classes_ * sizeof(float);
    needs.backward_reads_inputs = true;  // the labels
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    CheckLabels(args);
    for (int64_t n = 0; n < batch_; ++n) {
      const float* x = args.inputs[0].f32() + n * classes_;
      float* p = mode_ == Mode::kTrain ? Probabilities(args) + n * classes_ : nullptr;
      args.outputs[0].f32()[n] = LossOf(x, args.inputs[1].i32()[n], p);
    }
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    const float* p = Probabilities(args);
    float* dx = args.input_gradients[0].f32();
    for (int64_t n = 0; n < batch_; ++n, p += classes_, dx += classes_) {
      const int64_t label = args.inputs[1].i32()[n];
      for (int64_t c = 0; c < classes_; ++c) {
        dx[c] = (p[c] - (c == label ? 1.0f : 0.0f)) * args.loss_scale;
      }
    }
  }

 private:
  static float* Probabilities(const KernelArgs& args) { return static_cast<float*>(args.saved); }

  void CheckLabels(const KernelArgs& args) const {
    const int32_t* labels = args.inputs[1].i32();
    for (int64_t n = 0; n < batch_; ++n) {
      if (labels[n] >= 0 && labels[n] < classes_) continue;
      throw DataError("label " + std::to_string(labels[n]) + " at position " +
                          std::to_string(args.first_position + n) + " of the batch (step " +
                          std::to_string(args.step) + ") is outside [0, " +
                          std::to_string(classes_) + ")",
                      "has the model one output for each class of the data set?");
    }
  }

  // The largest logit is taken off first, so that no exponential overflows.  A NaN or infinite
  // logit gives a loss that is not finite.
  float LossOf(const float* x, int32_t label, float* p) const {
    float largest = x[0];
    for (int64_t c = 1; c < classes_; ++c) largest = std::max(largest, x[c]);
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      const float e = std::exp(x[c] - largest);
      if (p != nullptr) p[c] = e;
      sum += e;
    }
    if (p != nullptr) {
      const auto inverse = static_cast<float>(1 / sum);
      for (int64_t c = 0; c < classes_; ++c) p[c] *= inverse;
    }
    return static_cast<float>(std::log(sum) - (static_cast<double>(x[label]) - largest));
  }

  const int64_t batch_, classes_;
  const Mode mode_;
};

std::optional<KernelOffer> OfferSoftmaxCrossEntropyDirect(const KernelRequest& request) {
  if (request.device.kind != DeviceKind::kCpu || request.fused_relu) return std::nullopt;
  return AllPlain(request);
}

std::unique_ptr<Kernel> MakeSoftmaxCrossEntropyDirect(const KernelRequest& request,
                                                      const KernelOffer&) {
  return std::make_unique<SoftmaxCrossEntropyDirect>(request);
}

DTRAIN_KERNEL("softmax_cross_entropy", "direct", OfferSoftmaxCrossEntropyDirect,
              MakeSoftmaxCrossEntropyDirect);

}  // namespace
}  // namespace dtrain
