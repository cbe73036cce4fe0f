// Implements the inner product on the GPU under the name "direct", for layers with few products, which take less time
// than cuBLAS's several kernels take to begin: one kernel for y with bias and ReLU, one for all gradients, with the ReLU's
// mask.  Sums are double, in an order that depends only on the shape.  With
// `precision: bf16` or fp16 factors are rounded as for cuBLAS; with tf32 nothing is.
#include "framework/kernels/cuda/column_sums.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/nn/kernel.h"
#include "layers/inner_product/inner_product.h"

namespace dtrain {
namespace {

struct Product {
  DType type;  // to which factors are rounded

  DT_DEVICE double operator()(float a, float b) const {
    return static_cast<double>(Rounded(type, a)) * Rounded(type, b);
  }
};

class InnerProductDirectCuda : public Kernel {
 public:
  explicit InnerProductDirectCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        product_{FactorTypeOf(queue_.precision())},
        in_(static_cast<const InnerProduct*>(request.layer)->inputs()),
        out_(static_cast<const InnerProduct*>(request.layer)->outputs()),
        rows_(request.inputs[0].count() / in_),
        biases_(request.layer->Params().size() > 1 ? out_ : 0),
        relu_(request.fused_relu),
        sums_(request.device, {rows_, in_ * out_ + biases_}) {
    if (request.mode == Mode::kTrain) partial_ = room_.Take(2 * sums_.partial_sums());
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = room_.bytes();
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    needs.backward_adds = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const float *const x = args.inputs[0].f32(), *const w = args.params[0].f32();
    const float* const bias = biases_ > 0 ? args.params[1].f32() : nullptr;
    float* const y = args.outputs[0].f32();
    const int64_t in = in_, out = out_;
    const Product product = product_;
    const bool relu = relu_;
    ForEach(
        queue_,
        {"inner product",
         {Reads(x, rows_ * in), Reads(w, in * out), Reads(bias, biases_), Writes(y, rows_ * out)}},
        rows_ * out, [=] DT_DEVICE(int64_t i) {
          const int64_t row = i / out, o = i % out;
          double sum = 0;
          for (int64_t k = 0; k < in; ++k) sum += product(x[row * in + k], w[o * in + k]);
          auto value = static_cast<float>(sum);
          if (bias != nullptr) value += bias[o];
          y[i] = relu && value < 0 ? 0 : value;  // keeps a NaN
        });
  }

  void Backward(const KernelArgs& args) override {
    const OpenGradient<float> gradient = {relu_ ? args.outputs[0].f32() : nullptr,
                                          args.output_gradients[0].f32()};
    const float *const x = args.inputs[0].f32(), *const w = args.params[0].f32();
    float* const dw = args.param_gradients[0].f32();
    float* const dbias = biases_ > 0 ? args.param_gradients[1].f32() : nullptr;
    float* const dx = args.input_gradients[0].f32();
    const int64_t in = in_, out = out_, weights = in * out;
    const int64_t inputs = dx == nullptr ? 0 : rows_ * in;
    const Product product = product_;
    const bool accumulate = args.accumulate, adds = args.adds_input_gradient;
    SumColumns(
        queue_,
        {"inner product gradients",
         {Reads(x, rows_ * in), Reads(gradient.dy, rows_ * out), Reads(gradient.y, rows_ * out),
          Reads(w, dx == nullptr ? 0 : weights)}},
        {Stores(dw, weights, accumulate), Stores(dbias, biases_, accumulate),
         Stores(dx, inputs, adds)},
        sums_, reinterpret_cast<double*>(static_cast<float*>(args.scratch) + partial_),
        [=] DT_DEVICE(int64_t row, int64_t i) -> double {
          if (i >= weights) return gradient.At(row * out + i - weights);
          return product(gradient.At(row * out + i / in), x[row * in + i % in]);
        },
        [=] DT_DEVICE(int64_t i, double sum) {
          float& to = i < weights ? dw[i] : dbias[i - weights];
          to = static_cast<float>(accumulate ? to + sum : sum);
        },
        Beside{inputs, [=] DT_DEVICE(int64_t i) {
                 const int64_t row = i / in, k = i % in;
                 double sum = adds ? dx[i] : 0;
                 for (int64_t o = 0; o < out; ++o) {
                   sum += product(gradient.At(row * out + o), w[o * in + k]);
                 }
                 dx[i] = static_cast<float>(sum);
               }});
  }

 private:
  CudaQueue& queue_;
  const Product product_;
  const int64_t in_, out_;
  const int64_t rows_;  // samples, or steps of sequences
  const int64_t biases_;
  const bool relu_;
  const ColumnSums sums_;  // for the gradients of weights and biases
  FloatRoom room_;
  int64_t partial_ = 0;
};

std::unique_ptr<Kernel> MakeInnerProductDirectCuda(const KernelRequest& request,
                                                   const KernelOffer&) {
  return std::make_unique<InnerProductDirectCuda>(request);
}

// A thread that adds up a long row waits for memory at each step, so rows are short as well.
constexpr int64_t kFewProducts = 125'000, kShort = 1024;

std::optional<KernelOffer> OfferInnerProductDirectCuda(const KernelRequest& request) {
  const Shape& weights = request.layer->Params()[0].shape;
  const bool few = weights.count() <= kFewProducts && std::max(weights[0], weights[1]) <= kShort;
  KernelOffer offer = AllPlain(request);
  offer.preference = few ? 10 : -10;
  return offer;
}

DTRAIN_KERNEL("inner_product", DeviceKind::kCuda, "direct", OfferInnerProductDirectCuda,
              MakeInnerProductDirectCuda);

}  // namespace
}  // namespace dtrain
