// Implements convolution on the GPU directly from the definition, for groups, dilation or different sides if cuDNN has
// no deterministic kernel (convolution_cuda.cc).  One thread computes an element of y or dx, one block a weight's
// gradient.  Sums are double, in an order that depends only on the shape.  With `precision: bf16` images are
// bf16 and weights are rounded, as for cuDNN.
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_direct_cuda.h"

namespace dtrain {
namespace {

// Describes one axis (rows or columns) of image, window and output.
struct Side {
  int64_t pixels, results, kernel, stride, pad, dilation;

  // Returns the pixel under tap k of result i, or a negative number if that is outside the image.
  DT_DEVICE int64_t PixelOf(int64_t i, int64_t k) const {
    const int64_t pixel = i * stride - pad + k * dilation;
    return pixel < pixels ? pixel : -1;
  }
  // Returns the result whose tap k is on a pixel, or -1 if there is none.
  DT_DEVICE int64_t ResultOf(int64_t pixel, int64_t k) const {
    const int64_t from = pixel + pad - k * dilation;
    return from >= 0 && from % stride == 0 && from / stride < results ? from / stride : -1;
  }
};

// T is the type of images, to which the factors of products are rounded.
template <class T>
struct Geometry {
  Side rows, columns;
  int64_t channels, outputs;              // over all groups
  int64_t group_channels, group_outputs;  // of one group

  static DT_DEVICE double Product(T image, float weight) {
    return static_cast<double>(static_cast<float>(image)) *
           static_cast<float>(static_cast<T>(weight));
  }

  DT_DEVICE int64_t InputAt(int64_t n, int64_t row, int64_t column) const {
    return ((n * rows.pixels + row) * columns.pixels + column) * channels;
  }
  DT_DEVICE int64_t OutputAt(int64_t n, int64_t row, int64_t column) const {
    return ((n * rows.results + row) * columns.results + column) * outputs;
  }
  DT_DEVICE int64_t WeightAt(int64_t o, int64_t channel, int64_t k, int64_t l) const {
    return ((o * group_channels + channel) * rows.kernel + k) * columns.kernel + l;
  }

  // Returns y[i] without its bias.
  DT_DEVICE double Result(const T* x, const float* w, int64_t i) const {
    const int64_t o = i % outputs, pixel = i / outputs;
    const int64_t n = pixel / columns.results / rows.results;
    const int64_t first = o / group_outputs * group_channels;
    double sum = 0;
    for (int64_t k = 0; k < rows.kernel; ++k) {
      const int64_t row = rows.PixelOf(pixel / columns.results % rows.results, k);
      for (int64_t l = 0; l < columns.kernel && row >= 0; ++l) {
        const int64_t column = columns.PixelOf(pixel % columns.results, l);
        if (column < 0) continue;
        const T* const in = x + InputAt(n, row, column) + first;
        for (int64_t c = 0; c < group_channels; ++c) {
          sum += Product(in[c], w[WeightAt(o, c, k, l)]);
        }
      }
    }
    return sum;
  }

  // Returns dx[i].
  DT_DEVICE double InputGradient(const T* dy, const float* w, int64_t i) const {
    const int64_t channel = i % channels, pixel = i / channels;
    const int64_t n = pixel / columns.pixels / rows.pixels;
    const int64_t first = channel / group_channels * group_outputs;
    double sum = 0;
    for (int64_t k = 0; k < rows.kernel; ++k) {
      const int64_t row = rows.ResultOf(pixel / columns.pixels % rows.pixels, k);
      for (int64_t l = 0; l < columns.kernel && row >= 0; ++l) {
        const int64_t column = columns.ResultOf(pixel % columns.pixels, l);
        if (column < 0) continue;
        const T* const out = dy + OutputAt(n, row, column) + first;
        for (int64_t o = 0; o < group_outputs; ++o) {
          const int64_t at = WeightAt(first + o, channel % group_channels, k, l);
          sum += Product(out[o], w[at]);
        }
      }
    }
    return sum;
  }

  // Returns the term that pixel `pixel` of y contributes to dw[i].
  DT_DEVICE double WeightTerm(const T* x, const T* dy, int64_t i, int64_t pixel) const {
    const int64_t l = i % columns.kernel, k = i / columns.kernel % rows.kernel;
    const int64_t channel = i / columns.kernel / rows.kernel % group_channels;
    const int64_t o = i / columns.kernel / rows.kernel / group_channels;
    const int64_t row = rows.PixelOf(pixel / columns.results % rows.results, k);
    const int64_t column = columns.PixelOf(pixel % columns.results, l);
    if (row < 0 || column < 0) return 0;
    const int64_t n = pixel / columns.results / rows.results;
    const int64_t from = InputAt(n, row, column) + o / group_outputs * group_channels + channel;
    return static_cast<double>(static_cast<float>(x[from])) *
           static_cast<float>(dy[pixel * outputs + o]);
  }
};

template <class T>
Geometry<T> GeometryOf(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Shape &x = request.inputs[0], &y = request.outputs[0];
  const HeightWidth &kernel = layer.kernel(), &stride = layer.stride(), &pad = layer.pad();
  const HeightWidth& dilation = layer.dilation();
  return {{x[2], y[2], kernel.height, stride.height, pad.height, dilation.height},
          {x[3], y[3], kernel.width, stride.width, pad.width, dilation.width},
          x[1],
          y[1],
          x[1] / layer.groups(),
          y[1] / layer.groups()};
}

template <class T>
class ConvolutionDirectCuda : public Kernel {
 public:
  explicit ConvolutionDirectCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        geometry_(GeometryOf<T>(request)),
        relu_(request.fused_relu),
        inputs_(request.inputs[0].count()),
        weights_(request.layer->Params()[0].shape.count()),
        pixels_(request.device, request.outputs[0].count() / request.outputs[0][1],
                request.outputs[0][1], ElementsOfPack(sizeof(T))) {
    if (request.mode == Mode::kTrain) partial_ = room_.Take(2 * pixels_.partial_sums());
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = room_.bytes();
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const Geometry<T> geometry = geometry_;
    const T* const x = args.inputs[0].as<const T>();
    const float* const w = args.params[0].f32();
    T* const y = args.outputs[0].as<T>();
    const int64_t outputs = pixels_.rows() * pixels_.columns();
    ForEach(queue_, {"convolution", {Reads(x, inputs_), Reads(w, weights_), Writes(y, outputs)}},
            outputs, [=] DT_DEVICE(int64_t i) {
              y[i] = static_cast<T>(static_cast<float>(geometry.Result(x, w, i)));
            });
    const float* const bias = args.params.size() > 1 ? args.params[1].f32() : nullptr;
    AddBias(queue_, args.outputs[0], bias, relu_);
  }

  void Backward(const KernelArgs& args) override {
    const Tensor& dy = args.output_gradients[0];
    if (relu_) MaskGradient(queue_, args.outputs[0], dy);
    if (args.params.size() > 1) {
      double* const partial =
          reinterpret_cast<double*>(static_cast<float*>(args.scratch) + partial_);
      SumOverRows(queue_, pixels_, dy, partial, args.accumulate, args.param_gradients[1].f32());
    }
    BackwardWeights(args);
    if (args.input_gradients[0].data != nullptr) BackwardData(args);
  }

  void BackwardWeights(const KernelArgs& args) {
    const Geometry<T> geometry = geometry_;
    const T *const x = args.inputs[0].as<const T>(), *const dy =
                                                         args.output_gradients[0].as<const T>();
    float* const dw = args.param_gradients[0].f32();
    const bool accumulate = args.accumulate;
    ForEachRow(
        queue_,
        {"convolution weight gradient",
         {Reads(x, inputs_), Reads(dy, pixels_.rows() * pixels_.columns()),
          Stores(dw, weights_, accumulate)}},
        weights_, pixels_.rows(), 0.0,
        [=] DT_DEVICE(int64_t i, int64_t pixel) { return geometry.WeightTerm(x, dy, i, pixel); },
        [] DT_DEVICE(double a, double b) { return a + b; },
        [=] DT_DEVICE(int64_t i, double sum) {
          dw[i] = static_cast<float>(accumulate ? dw[i] + sum : sum);
        });
  }

  void BackwardData(const KernelArgs& args) {
    const Geometry<T> geometry = geometry_;
    const T* const dy = args.output_gradients[0].as<const T>();
    const float* const w = args.params[0].f32();
    T* const dx = args.input_gradients[0].as<T>();
    ForEach(
        queue_,
        {"convolution input gradient",
         {Reads(dy, pixels_.rows() * pixels_.columns()), Reads(w, weights_), Writes(dx, inputs_)}},
        inputs_, [=] DT_DEVICE(int64_t i) {
          dx[i] = static_cast<T>(static_cast<float>(geometry.InputGradient(dy, w, i)));
        });
  }

 private:
  CudaQueue& queue_;
  const Geometry<T> geometry_;
  const bool relu_;
  const int64_t inputs_, weights_;
  const ColumnSums pixels_;
  FloatRoom room_;
  int64_t partial_ = 0;
};

// The low preference means that this kernel runs only if the user names it or "cudnn" hands the layer over to it.
std::optional<KernelOffer> OfferConvolutionDirectCuda(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  if (layer.IsPlainSquare()) return std::nullopt;
  KernelOffer offer = OfferImages(request, ImageTypeOf(request.device.precision));
  offer.preference = -10;
  return offer;
}

DTRAIN_KERNEL("convolution", DeviceKind::kCuda, "direct", OfferConvolutionDirectCuda,
              MakeConvolutionDirectCuda);

}  // namespace

std::unique_ptr<Kernel> MakeConvolutionDirectCuda(const KernelRequest& request,
                                                  const KernelOffer& offer) {
  return WithElementType(offer.inputs[0].dtype, [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<ConvolutionDirectCuda<T>>(request);
  });
}

}  // namespace dtrain
