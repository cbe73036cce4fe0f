// Inner product on the GPU, implementation "cublas": the products are cuBLAS's, bias and fused ReLU
// one pass behind them.
#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/matrix_product.h"
#include "framework/nn/kernel.h"
#include "layers/inner_product/inner_product.h"

namespace dtrain {
namespace {

// y[n,o] += bias[o], where there is one; then max(0, y), which keeps a NaN.
void AddBias(CudaQueue& queue, const DeviceMatrix& product, const float* bias, bool relu) {
  float* const y = product.data;
  const int64_t out = product.columns;
  ForEach(queue, product.rows * out, [=] DT_DEVICE(int64_t i) {
    const float sum = bias == nullptr ? y[i] : y[i] + bias[i % out];
    y[i] = relu && sum < 0 ? 0 : sum;
  });
}

// No gradient flows where the ReLU has cut off.
void MaskGradient(CudaQueue& queue, int64_t count, const float* y, float* dy) {
  ForEach(queue, count, [=] DT_DEVICE(int64_t i) { dy[i] = y[i] > 0 ? dy[i] : 0; });
}

// sum[o] = (or +=) sum over rows of x[row, o].
void SumOverRows(CudaQueue& queue, const DeviceMatrix& x, bool accumulate, float* sum) {
  const float* const from = x.data;
  const int64_t stride = x.stride;
  ForEachRow(
      queue, x.columns, x.rows, 0.0f,
      [=] DT_DEVICE(int64_t o, int64_t row) { return from[row * stride + o]; },
      [] DT_DEVICE(float a, float b) { return a + b; },
      [=] DT_DEVICE(int64_t o, float total) { sum[o] = accumulate ? sum[o] + total : total; });
}

class InnerProductCublas : public Kernel {
 public:
  explicit InnerProductCublas(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
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
    if (bias != nullptr || relu_) AddBias(queue_, y, bias, relu_);
  }

  void Backward(const KernelArgs& args) override {
    const DeviceMatrix dy = DeviceMatrix::Dense(args.output_gradients[0].f32(), rows_, out_);
    if (relu_) MaskGradient(queue_, rows_ * out_, args.outputs[0].f32(), dy.data);
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

std::optional<KernelOffer> OfferInnerProductCublas(const KernelRequest& request) {
  return AllPlain(request);
}

std::unique_ptr<Kernel> MakeInnerProductCublas(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<InnerProductCublas>(request);
}

DTRAIN_KERNEL("inner_product", DeviceKind::kCuda, "cublas", OfferInnerProductCublas,
              MakeInnerProductCublas);

}  // namespace
}  // namespace dtrain
