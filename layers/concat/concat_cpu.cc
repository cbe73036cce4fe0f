// Implements concat on the CPU under the name "direct".
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"

namespace dtrain {
namespace {

int64_t LastOf(const Shape& shape) { return shape[shape.rank() - 1]; }

class ConcatDirect : public Kernel {
 public:
  explicit ConcatDirect(const KernelRequest& request)
      : width_(LastOf(request.outputs[0])),
        rows_(request.outputs[0].count() / std::max<int64_t>(width_, 1)),
        device_(request.device) {
    for (const Shape& input : request.inputs) widths_.push_back(LastOf(input));
  }

  void Forward(const KernelArgs& args) override {
    ParallelFor(device_.threads, rows_, [&](int64_t row) {
      float* to = args.outputs[0].f32() + row * width_;
      for (size_t i = 0; i < widths_.size(); ++i) {
        to = std::copy_n(args.inputs[i].f32() + row * widths_[i], widths_[i], to);
      }
    });
  }

  void Backward(const KernelArgs& args) override {
    ParallelFor(device_.threads, rows_, [&](int64_t row) {
      const float* from = args.output_gradients[0].f32() + row * width_;
      for (size_t i = 0; i < widths_.size(); from += widths_[i++]) {
        if (args.input_gradients[i].data == nullptr) continue;
        std::copy_n(from, widths_[i], args.input_gradients[i].f32() + row * widths_[i]);
      }
    });
  }

 private:
  std::vector<int64_t> widths_;
  const int64_t width_, rows_;
  const Device device_;
};

std::unique_ptr<Kernel> MakeConcatDirect(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<ConcatDirect>(request);
}

DTRAIN_KERNEL("concat", DeviceKind::kCpu, "direct", OfferPlain, MakeConcatDirect);

}  // namespace
}  // namespace dtrain
