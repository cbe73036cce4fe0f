// Implements LRN on the CPU under the name "direct", for plain tensors.  Threads divide the samples.  Forward saves
// `scale`, of x's size, for Backward; in evaluation it is in scratch memory instead.  Backward's scratch memory holds
// ratios and powers, of x's size, and a plane of sums per sample.
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/loops.h"
#include "framework/nn/kernel.h"
#include "layers/lrn/lrn.h"
#include "layers/lrn/lrn_loops.h"

namespace dtrain {
namespace {

class LrnDirect : public Kernel {
 public:
  explicit LrnDirect(const KernelRequest& request)
      : factors_(static_cast<const Lrn*>(request.layer)->factors()),
        samples_(request.inputs[0][0]),
        channels_(request.inputs[0][1]),
        plane_(request.inputs[0].CountFrom(2)),
        training_(request.mode == Mode::kTrain),
        threads_(request.inputs[0].count() < 2 * kSliceMin ? 1 : request.device.threads),
        isa_(request.device.isa) {
    FloatRoom& kept = training_ ? saved_ : scratch_;
    scale_ = kept.Take(samples_ * size());
    if (!training_) return;
    ratio_ = scratch_.Take(samples_ * size());
    power_ = scratch_.Take(samples_ * size());
    sum_ = scratch_.Take(samples_ * plane_);
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.saved_bytes = saved_.bytes();
    needs.scratch_bytes = scratch_.bytes();
    needs.backward_reads_inputs = true;
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    float* const scales = static_cast<float*>(training_ ? args.saved : args.scratch) + scale_;
    ParallelFor(threads_, samples_, [&](int64_t n) {
      const float* const x = args.inputs[0].f32() + n * size();
      float* const y = args.outputs[0].f32() + n * size();
      for (int64_t c = 0; c < channels_; ++c) {
        const int64_t at = c * plane_;
        float* const scale = scales + n * size() + at;
        const Range near = Near(c);
        for (int64_t from = near.begin; from < near.end; ++from) {
          DTRAIN_ISA_SELECT(isa_, LrnSquares)
          (x + from * plane_, plane_, from > near.begin, scale);
        }
        DTRAIN_ISA_SELECT(isa_, LrnForward)
        (x + at, plane_, factors_.k, factors_.share, factors_.beta, scale, y + at);
      }
    });
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    ParallelFor(threads_, samples_, [&](int64_t n) { SampleGradient(args, n); });
  }

 private:
  int64_t size() const { return channels_ * plane_; }
  Range Near(int64_t c) const {
    return {std::max<int64_t>(0, c - factors_.reach), std::min(channels_, c + factors_.reach + 1)};
  }

  void SampleGradient(const KernelArgs& args, int64_t n) const {
    const int64_t first = n * size();
    const float* const x = args.inputs[0].f32() + first;
    const float* const dy = args.output_gradients[0].f32() + first;
    float* const dx = args.input_gradients[0].f32() + first;
    float* const scratch = static_cast<float*>(args.scratch);
    float *const ratio = scratch + ratio_ + first, *const power = scratch + power_ + first;
    float* const sum = scratch + sum_ + n * plane_;
    const float* const scale = static_cast<const float*>(args.saved) + scale_ + first;
    DTRAIN_ISA_SELECT(isa_, LrnRatios)(x, dy, scale, size(), factors_.beta, ratio, power);
    for (int64_t c = 0; c < channels_; ++c) {
      const Range near = Near(c);
      std::copy_n(ratio + near.begin * plane_, plane_, sum);
      for (int64_t from = near.begin + 1; from < near.end; ++from) {
        DTRAIN_ISA_SELECT(isa_, AddLoop)(plane_, ratio + from * plane_, sum);
      }
      const int64_t at = c * plane_;
      DTRAIN_ISA_SELECT(isa_, LrnBackward)
      (x + at, dy + at, power + at, sum, plane_, 2 * factors_.share * factors_.beta, dx + at);
    }
  }

  const LrnFactors factors_;
  const int64_t samples_, channels_, plane_;
  const bool training_;
  const int threads_;
  const Isa isa_;
  FloatRoom saved_, scratch_;
  int64_t scale_ = 0, ratio_ = 0, power_ = 0, sum_ = 0;
};

std::unique_ptr<Kernel> MakeLrnDirect(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<LrnDirect>(request);
}

DTRAIN_KERNEL("lrn", DeviceKind::kCpu, "direct", OfferPlain, MakeLrnDirect);

}  // namespace
}  // namespace dtrain
