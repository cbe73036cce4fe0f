// Implements the inner product on the CPU under the name "gemm".
//
// Forward uses our own product. dnnl_sgemm takes different code paths for different row counts, so a sample's output
// would depend on its batch (oneDNN 2.6: AVX-512 below 16 rows, AVX2 if rows mod 6 is 1 to 3, and with two threads if
// it splits the depth), which nn/kernel.h forbids.  Here every output is one fixed chain of additions, independent of
// batch and threads.  Backward sums over the batch anyway and uses dnnl_sgemm.
#include "framework/core/layout.h"
#include "framework/device/cpu/parallel.h"
#include "framework/kernels/cpu/packed_gemm.h"
#include "framework/kernels/cpu/reorder.h"
#include "framework/nn/kernel.h"
#include "layers/inner_product/inner_product.h"
#include "layers/inner_product/inner_product_loops.h"

namespace dtrain {
namespace {

Shape AsRows(const Shape& shape, int64_t features) { return {shape.count() / features, features}; }

class InnerProductGemm : public Kernel {
 public:
  explicit InnerProductGemm(const KernelRequest& request)
      : x_(AsRows(request.inputs[0], static_cast<const InnerProduct*>(request.layer)->inputs())),
        y_(AsRows(request.outputs[0], static_cast<const InnerProduct*>(request.layer)->outputs())),
        relu_(request.fused_relu),
        device_(request.device) {
    // Starting a second thread costs as much as about 2 million multiply-adds.
    if (x_.count() * y_[1] < 2'000'000) device_.threads = 1;
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = static_cast<size_t>(XFloats() + YFloats()) * sizeof(float);
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    float* const x = static_cast<float*>(args.scratch);
    float* const y = x + XFloats();
    Reorder({args.inputs[0].data, x_}, {x, x_, DType::kF32, Format::kBatchBlocked}, device_);
    const float* bias = args.params.size() > 1 ? args.params[1].f32() : nullptr;
    const BlockedProduct product = {.x = x,
                                    .w = args.params[0].f32(),
                                    .bias = bias,
                                    .y = y,
                                    .blocks = XFloats() / (x_[1] * kBatchBlock),
                                    .in = x_[1],
                                    .out = y_[1],
                                    .relu = relu_};
    ParallelFor(device_.threads, device_.threads, [&](int64_t part) {
      const Range outputs = SplitEvenly({0, y_[1]}, device_.threads, part);
      DTRAIN_ISA_SELECT(device_.isa, MultiplyBlocked)(product, outputs.begin, outputs.end);
    });
    Reorder({y, y_, DType::kF32, Format::kBatchBlocked}, {args.outputs[0].data, y_}, device_);
  }

  void Backward(const KernelArgs& args) override {
    const int64_t batch = x_[0], in = x_[1], out = y_[1];
    float* const dy = args.output_gradients[0].f32();
    DTRAIN_ISA_SELECT(device_.isa, MaskAndSumRows)
    (dy, relu_ ? args.outputs[0].f32() : nullptr, batch, out, args.accumulate,
     args.params.size() > 1 ? args.param_gradients[1].f32() : nullptr);
    const Matrix dys = Matrix::Dense(dy, batch, out);
    WeightGradient(dys, Matrix::Dense(args.inputs[0].f32(), batch, in), args.accumulate,
                   Matrix::Dense(args.param_gradients[0].f32(), out, in));
    if (args.input_gradients[0].data == nullptr) return;
    Multiply({.a = dys,
              .b = Matrix::Dense(args.params[0].f32(), out, in),
              .c = Matrix::Dense(args.input_gradients[0].f32(), batch, in)});
  }

 private:
  int64_t XFloats() const { return StoredCount(x_, Format::kBatchBlocked); }
  int64_t YFloats() const { return StoredCount(y_, Format::kBatchBlocked); }

  const Shape x_;  // flattened: [rows, I]
  const Shape y_;  // [rows, O]
  const bool relu_;
  Device device_;
};

std::unique_ptr<Kernel> MakeInnerProductGemm(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<InnerProductGemm>(request);
}

DTRAIN_KERNEL("inner_product", DeviceKind::kCpu, "gemm", AllPlain, MakeInnerProductGemm);

}  // namespace
}  // namespace dtrain
