// Implements softmax cross-entropy on the CPU under the name "direct".  Threads divide the rows.
//
// Forward saves {largest logit, 1 / sum of exponentials} of each row for Backward, which computes the exponentials
// again: for the thousands of classes of a vocabulary, writing them to memory and reading them back would take longer,
// and as much memory as the logits.
#include <cmath>

#include "framework/core/error.h"
#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/softmax_cross_entropy/softmax_cross_entropy.h"
#include "layers/softmax_cross_entropy/softmax_cross_entropy_loops.h"

namespace dtrain {
namespace {

class SoftmaxCrossEntropyDirect : public Kernel {
 public:
  explicit SoftmaxCrossEntropyDirect(const KernelRequest& request)
      : layer_(*static_cast<const SoftmaxCrossEntropy*>(request.layer)),
        batch_(request.inputs[0][0]),
        terms_(request.inputs[1].CountFrom(1)),
        classes_(request.inputs[0].count() / (batch_ * terms_)),
        smoothing_(layer_.label_smoothing()),
        threads_(request.inputs[0].count() < kSliceMin ? 1 : request.device.threads),
        isa_(request.device.isa),
        mode_(request.mode) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (mode_ == Mode::kTrain) needs.saved_bytes = batch_ * terms_ * sizeof(Kept);
    needs.backward_reads_inputs = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    CheckLabels(args);
    ParallelFor(threads_, batch_, [&](int64_t n) {
      double loss = 0;
      for (int64_t t = n * terms_; t < (n + 1) * terms_; ++t) loss += TermLoss(args, t);
      args.outputs[0].f32()[n] = static_cast<float>(loss);
    });
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    ParallelFor(threads_, batch_ * terms_, [&](int64_t t) { TermGradient(args, t); });
  }

 private:
  struct Kept {
    float largest, inverse_sum;
  };

  static Kept& KeptOf(const KernelArgs& args, int64_t t) {
    return static_cast<Kept*>(args.saved)[t];
  }

  void CheckLabels(const KernelArgs& args) const {
    const int32_t* labels = args.inputs[1].i32();
    for (int64_t t = 0; t < batch_ * terms_; ++t) {
      if ((labels[t] >= 0 && labels[t] < classes_) || layer_.Ignores(labels[t])) continue;
      throw DataError("label " + std::to_string(labels[t]) + " at position " +
                          std::to_string(args.first_position + t / terms_) +
                          " of the batch (step " + std::to_string(args.step) + ") is outside [0, " +
                          std::to_string(classes_) + ")",
                      "has the model one output for each class of the data set?");
    }
  }

  // The largest logit is subtracted first, so that no exponential overflows.  A NaN or infinite logit gives a loss that
  // is not finite.
  double TermLoss(const KernelArgs& args, int64_t t) const {
    const int32_t label = args.inputs[1].i32()[t];
    if (layer_.Ignores(label)) return 0;
    const float* x = args.inputs[0].f32() + t * classes_;
    const SoftmaxRow row = DTRAIN_ISA_SELECT(isa_, SoftmaxOf)(x, classes_);
    if (mode_ == Mode::kTrain) KeptOf(args, t) = {row.largest, static_cast<float>(1 / row.sum)};
    double target = static_cast<double>(x[label]) - row.largest;
    if (smoothing_ > 0) {
      const double mean = row.logits / static_cast<double>(classes_);
      target = (1 - smoothing_) * target + smoothing_ * mean;
    }
    return std::log(row.sum) - target;
  }

  void TermGradient(const KernelArgs& args, int64_t t) const {
    const int32_t label = args.inputs[1].i32()[t];
    float* const dx = args.input_gradients[0].f32() + t * classes_;
    if (layer_.Ignores(label)) return static_cast<void>(std::fill_n(dx, classes_, 0.0f));
    const Kept& kept = KeptOf(args, t);
    const double spread = smoothing_ / static_cast<double>(classes_);
    DTRAIN_ISA_SELECT(isa_, SoftmaxGradient)
    (args.inputs[0].f32() + t * classes_, classes_, kept.largest,
     kept.inverse_sum * args.loss_scale, static_cast<float>(spread) * args.loss_scale, dx);
    dx[label] -= static_cast<float>(1 - smoothing_) * args.loss_scale;
  }

  const SoftmaxCrossEntropy& layer_;
  const int64_t batch_, terms_, classes_;
  const double smoothing_;
  const int threads_;
  const Isa isa_;
  const Mode mode_;
};

std::unique_ptr<Kernel> MakeSoftmaxCrossEntropyDirect(const KernelRequest& request,
                                                      const KernelOffer&) {
  return std::make_unique<SoftmaxCrossEntropyDirect>(request);
}

DTRAIN_KERNEL("softmax_cross_entropy", DeviceKind::kCpu, "direct", OfferPlain,
              MakeSoftmaxCrossEntropyDirect);

}  // namespace
}  // namespace dtrain
