// Implements the inner product on the GPU under the name "cublas". cuBLAS computes the products; one more pass applies
// bias and fused ReLU.
#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/rows.h"
#include "framework/nn/kernel.h"
#include "layers/inner_product/inner_product.h"

namespace dtrain {
namespace {

class InnerProductCublas : public Kernel {
 public:
  explicit InnerProductCublas(const KernelRequest& request)
      : queue_(ProductQueueOf(request.device)),
        in_(static_cast<const InnerProduct*>(request.layer)->inputs()),
        out_(static_cast<const InnerProduct*>(request.layer)->outputs()),
        rows_(request.inputs[0].count() / in_),
        relu_(request.fused_relu) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const DeviceMatrix y = DeviceMatrix::Dense(args.outputs[0].f32(), rows_, out_);
    Multiply(queue_, InputOf(args), WeightOf(args), y, {.transpose_b = true});
    const float* const bias = args.params.size() > 1 ? args.params[1].f32() : nullptr;
    AddBias(queue_, args.outputs[0], {args.outputs[0].shape.count() / out_, out_}, bias, relu_);
  }

  void Backward(const KernelArgs& args) override {
    const DeviceMatrix dy = DeviceMatrix::Dense(args.output_gradients[0].f32(), rows_, out_);
    if (relu_) MaskGradient(queue_, args.outputs[0], args.output_gradients[0]);
    if (args.params.size() > 1) {
      SumOverRows(queue_, dy, args.accumulate, args.param_gradients[1].f32());
    }
    Multiply(queue_, dy, InputOf(args),
             DeviceMatrix::Dense(args.param_gradients[0].f32(), out_, in_),
             {.transpose_a = true, .add = args.accumulate});
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    Multiply(queue_, dy, WeightOf(args), DeviceMatrix::Dense(dx, rows_, in_));
  }

 private:
  DeviceMatrix InputOf(const KernelArgs& args) const {
    return DeviceMatrix::Dense(args.inputs[0].f32(), rows_, in_);
  }
  DeviceMatrix WeightOf(const KernelArgs& args) const {
    return DeviceMatrix::Dense(args.params[0].f32(), out_, in_);
  }

  CudaQueue& queue_;
  const int64_t in_, out_;
  const int64_t rows_;  // samples, or steps of sequences
  const bool relu_;
};

std::unique_ptr<Kernel> MakeInnerProductCublas(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<InnerProductCublas>(request);
}

DTRAIN_KERNEL("inner_product", DeviceKind::kCuda, "cublas", AllPlain, MakeInnerProductCublas);

}  // namespace
}  // namespace dtrain
