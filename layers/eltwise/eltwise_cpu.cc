// Implements eltwise on the CPU under the name "direct".  It runs in whatever format the first
// input has.
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/eltwise/eltwise.h"
#include "layers/eltwise/eltwise_loops.h"

namespace dtrain {
namespace {

float* At(const Tensor& tensor, int64_t offset) {
  return tensor.data == nullptr ? nullptr : tensor.f32() + offset;
}

class EltwiseDirect : public Kernel {
 public:
  EltwiseDirect(const KernelRequest& request, const KernelOffer& offer)
      : count_(StoredCount(request.outputs[0], offer.outputs[0].format)),
        operation_(static_cast<const Eltwise&>(*request.layer).operation()),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        device_(request.device) {}

  // A maximum saves, for each element, the index of the input that is the largest.
  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (operation_ == EltwiseOperation::kMax && training_) {
      needs.saved_bytes = static_cast<size_t>(count_) * sizeof(uint16_t);
    }
    needs.backward_reads_inputs = operation_ == EltwiseOperation::kProduct;
    needs.backward_reads_outputs = relu_;
    needs.forward_in_place = !(training_ && needs.backward_reads_inputs);
    needs.backward_in_place = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    ForEachSlice(device_.threads, count_, [&](Range slice) {
      const float* so_far = At(args.inputs[0], slice.begin);
      for (size_t k = 1; k < args.inputs.size(); ++k) {
        Join(args, slice, k, so_far);
        so_far = At(args.outputs[0], slice.begin);
      }
    });
  }

  // The first input's gradient is written last, because it may overwrite dy.
  void Backward(const KernelArgs& args) override {
    ForEachSlice(device_.threads, count_, [&](Range slice) {
      for (int64_t at = slice.begin; at < slice.end; at += kChunk) {
        const Range chunk = {at, std::min(at + kChunk, slice.end)};
        for (size_t k = args.inputs.size(); k-- > 0;) {
          if (args.input_gradients[k].data != nullptr) WriteGradient(args, chunk, k);
        }
      }
    });
  }

 private:
  static constexpr int64_t kChunk = 4096;  // elements that fit in a core's cache

  // Combines `so_far`, the result for the inputs before k, with input k into y.
  void Join(const KernelArgs& args, Range slice, size_t k, const float* so_far) const {
    const float* const x = At(args.inputs[k], slice.begin);
    float* const y = At(args.outputs[0], slice.begin);
    const bool relu = relu_ && k + 1 == args.inputs.size();
    switch (operation_) {
      case EltwiseOperation::kSum:
        DTRAIN_ISA_SELECT(device_.isa, SumForward)(so_far, x, slice.size(), relu, y);
        return;
      case EltwiseOperation::kProduct:
        DTRAIN_ISA_SELECT(device_.isa, ProductForward)(so_far, x, slice.size(), relu, y);
        return;
      case EltwiseOperation::kMax:
        DTRAIN_ISA_SELECT(device_.isa, MaxForward)
        (so_far, {x, static_cast<uint16_t>(k)}, slice.size(), relu, y,
         training_ ? First(args, slice) : nullptr);
        return;
    }
  }

  void WriteGradient(const KernelArgs& args, Range chunk, size_t k) const {
    float* const dx = At(args.input_gradients[k], chunk.begin);
    DTRAIN_ISA_SELECT(device_.isa, PassGradient)
    (relu_ ? At(args.outputs[0], chunk.begin) : nullptr, At(args.output_gradients[0], chunk.begin),
     chunk.size(), dx);
    if (operation_ == EltwiseOperation::kMax) {
      DTRAIN_ISA_SELECT(device_.isa, KeepWhereFirst)
      (First(args, chunk), static_cast<uint16_t>(k), chunk.size(), dx);
    }
    if (operation_ != EltwiseOperation::kProduct) return;
    for (size_t other = 0; other < args.inputs.size(); ++other) {
      if (other == k) continue;
      DTRAIN_ISA_SELECT(device_.isa, MultiplyBy)
      (At(args.inputs[other], chunk.begin), chunk.size(), dx);
    }
  }

  static uint16_t* First(const KernelArgs& args, Range part) {
    return static_cast<uint16_t*>(args.saved) + part.begin;
  }

  const int64_t count_;
  const EltwiseOperation operation_;
  const bool relu_;
  const bool training_;
  const Device device_;
};

std::unique_ptr<Kernel> MakeEltwiseDirect(const KernelRequest& request, const KernelOffer& offer) {
  return std::make_unique<EltwiseDirect>(request, offer);
}

DTRAIN_KERNEL("eltwise", DeviceKind::kCpu, "direct", FollowInput, MakeEltwiseDirect);

}  // namespace
}  // namespace dtrain
