// Implements convolution on the GPU directly from the definition, for layers with few products, and for groups, dilation
// or different sides if cuDNN has no deterministic kernel (convolution_cuda.cc).  One thread computes an element of y or
// dx.  The gradients of weights and biases are sums over the lines of y: a thread adds up what its lines contribute to
// one of them.  Sums are double, in an order that depends only on the shape.  With `precision: bf16` or fp16 images have 16
// bits and weights are rounded, as for cuDNN; with tf32 nothing is.
#include "framework/kernels/cuda/column_sums.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/nn/kernel.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_direct_cuda.h"

namespace dtrain {
namespace {

// Describes one axis (rows or columns) of image, window and output.
struct Side {
  int pixels, results, kernel, stride, pad, dilation;

  // Returns the pixel under tap k of result i, or a negative number if that is outside the image.
  DT_DEVICE int PixelOf(int i, int k) const {
    const int pixel = i * stride - pad + k * dilation;
    return pixel < pixels ? pixel : -1;
  }
  // Returns the result whose tap k is on a pixel, or -1 if there is none.
  DT_DEVICE int ResultOf(int pixel, int k) const {
    const int from = pixel + pad - k * dilation;
    return from >= 0 && from % stride == 0 && from / stride < results ? from / stride : -1;
  }
};

// T is the type of images, to which the factors of products are rounded.  Indices are divided in 32 bits, which is several
// times as fast.
template <class T>
struct Geometry {
  Side rows, columns;
  unsigned channels, outputs;              // over all groups
  unsigned group_channels, group_outputs;  // of one group

  static DT_DEVICE double Product(T image, float weight) {
    return static_cast<double>(static_cast<float>(image)) *
           static_cast<float>(static_cast<T>(weight));
  }

  DT_DEVICE int64_t InputAt(int64_t n, int row, int column) const {
    return ((n * rows.pixels + row) * columns.pixels + column) * channels;
  }
  DT_DEVICE int64_t OutputAt(int64_t n, int row, int column) const {
    return ((n * rows.results + row) * columns.results + column) * outputs;
  }
  DT_DEVICE unsigned WeightAt(unsigned o, unsigned channel, int k, int l) const {
    return ((o * group_channels + channel) * rows.kernel + k) * columns.kernel + l;
  }

  // Returns y[i] without its bias.
  DT_DEVICE double Result(const T* x, const float* w, unsigned i) const {
    const unsigned o = i % outputs, pixel = i / outputs, line = pixel / columns.results;
    const int at_row = static_cast<int>(line % rows.results);
    const int at_column = static_cast<int>(pixel % columns.results);
    const unsigned first = o / group_outputs * group_channels;
    double sum = 0;
    for (int k = 0; k < rows.kernel; ++k) {
      const int row = rows.PixelOf(at_row, k);
      for (int l = 0; l < columns.kernel && row >= 0; ++l) {
        const int column = columns.PixelOf(at_column, l);
        if (column < 0) continue;
        const T* const in = x + InputAt(line / rows.results, row, column) + first;
        for (unsigned c = 0; c < group_channels; ++c) {
          sum += Product(in[c], w[WeightAt(o, c, k, l)]);
        }
      }
    }
    return sum;
  }

  // Returns dx[i].
  DT_DEVICE double InputGradient(const T* dy, const float* w, unsigned i) const {
    const unsigned channel = i % channels, pixel = i / channels, line = pixel / columns.pixels;
    const int at_row = static_cast<int>(line % rows.pixels);
    const int at_column = static_cast<int>(pixel % columns.pixels);
    const unsigned first = channel / group_channels * group_outputs;
    double sum = 0;
    for (int k = 0; k < rows.kernel; ++k) {
      const int row = rows.ResultOf(at_row, k);
      for (int l = 0; l < columns.kernel && row >= 0; ++l) {
        const int column = columns.ResultOf(at_column, l);
        if (column < 0) continue;
        const T* const out = dy + OutputAt(line / rows.pixels, row, column) + first;
        for (unsigned o = 0; o < group_outputs; ++o) {
          sum += Product(out[o], w[WeightAt(first + o, channel % group_channels, k, l)]);
        }
      }
    }
    return sum;
  }

  // The weights with their outputs last, so that adjacent threads read adjacent elements of dy.
  struct Weight {
    unsigned o, channel;
    int k, l;
  };
  DT_DEVICE Weight WeightOf(unsigned i) const {
    const unsigned inner = i / outputs, tap = inner / group_channels;
    return {i % outputs, inner % group_channels, static_cast<int>(tap / columns.kernel),
            static_cast<int>(tap % columns.kernel)};
  }

  // Returns what line `line` of y, a row of an image, contributes to the gradient of a weight.
  DT_DEVICE double WeightTerm(const T* x, const T* dy, const Weight& of, unsigned line) const {
    const int row = rows.PixelOf(static_cast<int>(line % rows.results), of.k);
    if (row < 0) return 0;
    const T* const in = x + InputAt(line / rows.results, row, 0) +
                        of.o / group_outputs * group_channels + of.channel;
    const T* const out = dy + int64_t{line} * columns.results * outputs + of.o;
    double sum = 0;
    for (int i = 0; i < columns.results; ++i) {
      const int column = columns.PixelOf(i, of.l);
      if (column < 0) continue;
      sum += static_cast<double>(static_cast<float>(in[int64_t{column} * channels])) *
             static_cast<float>(out[int64_t{i} * outputs]);
    }
    return sum;
  }
  // The same for the bias of output o.
  DT_DEVICE double BiasTerm(const T* dy, unsigned o, unsigned line) const {
    const T* const out = dy + int64_t{line} * columns.results * outputs + o;
    double sum = 0;
    for (int i = 0; i < columns.results; ++i) sum += static_cast<float>(out[int64_t{i} * outputs]);
    return sum;
  }
};

template <class T>
Geometry<T> GeometryOf(const KernelRequest& request) {
  const auto& layer = static_cast<const Convolution&>(*request.layer);
  const Shape &x = request.inputs[0], &y = request.outputs[0];
  ToInt(x.count()), ToInt(y.count());
  const auto side = [&](size_t axis, auto part) -> Side {
    return {ToInt(x[axis]),
            ToInt(y[axis]),
            ToInt(part(layer.kernel())),
            ToInt(part(layer.stride())),
            ToInt(part(layer.pad())),
            ToInt(part(layer.dilation()))};
  };
  const auto all = [](int64_t of) { return static_cast<unsigned>(ToInt(of)); };
  return {side(2, [](const HeightWidth& of) { return of.height; }),
          side(3, [](const HeightWidth& of) { return of.width; }),
          all(x[1]),
          all(y[1]),
          all(x[1] / layer.groups()),
          all(y[1] / layer.groups())};
}

template <class T>
class ConvolutionDirectCuda : public Kernel {
 public:
  explicit ConvolutionDirectCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        geometry_(GeometryOf<T>(request)),
        relu_(request.fused_relu),
        inputs_(request.inputs[0].count()),
        results_(request.outputs[0].count()),
        weights_(request.layer->Params()[0].shape.count()),
        biases_(request.layer->Params().size() > 1 ? request.outputs[0][1] : 0),
        lines_(request.device, request.outputs[0][0] * request.outputs[0][2], weights_ + biases_) {
    if (request.mode == Mode::kTrain) partial_ = room_.Take(2 * lines_.partial_sums());
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
    const Geometry<T> geometry = geometry_;
    const T* const x = args.inputs[0].as<const T>();
    const float* const w = args.params[0].f32();
    const float* const bias = biases_ > 0 ? args.params[1].f32() : nullptr;
    T* const y = args.outputs[0].as<T>();
    const bool relu = relu_;
    ForEach(queue_,
            {"convolution",
             {Reads(x, inputs_), Reads(w, weights_), Reads(bias, biases_), Writes(y, results_)}},
            results_, [=] DT_DEVICE(int64_t i) {
              const auto element = static_cast<unsigned>(i);
              auto value = static_cast<float>(geometry.Result(x, w, element));
              if (bias != nullptr) value += bias[element % geometry.outputs];
              y[i] = static_cast<T>(relu && value < 0 ? 0.0f : value);  // keeps a NaN
            });
  }

  void Backward(const KernelArgs& args) override {
    if (relu_) MaskGradient(queue_, args.outputs[0], args.output_gradients[0]);
    BackwardWeights(args);
    if (args.input_gradients[0].data != nullptr) BackwardData(args);
  }

  void BackwardWeights(const KernelArgs& args) {
    const Geometry<T> geometry = geometry_;
    const T *const x = args.inputs[0].as<const T>(), *const dy =
                                                         args.output_gradients[0].as<const T>();
    float* const dw = args.param_gradients[0].f32();
    float* const dbias = biases_ > 0 ? args.param_gradients[1].f32() : nullptr;
    const bool accumulate = args.accumulate;
    const auto weights = static_cast<unsigned>(weights_);
    SumColumns(
        queue_, {"convolution weight gradient", {Reads(x, inputs_), Reads(dy, results_)}},
        {Stores(dw, weights_, accumulate), Stores(dbias, biases_, accumulate)}, lines_,
        reinterpret_cast<double*>(static_cast<float*>(args.scratch) + partial_),
        [=] DT_DEVICE(int64_t line, int64_t i) -> double {
          const auto at = static_cast<unsigned>(i), of_line = static_cast<unsigned>(line);
          return at < weights ? geometry.WeightTerm(x, dy, geometry.WeightOf(at), of_line)
                              : geometry.BiasTerm(dy, at - weights, of_line);
        },
        [=] DT_DEVICE(int64_t i, double sum) {
          const auto at = static_cast<unsigned>(i);
          const auto of = geometry.WeightOf(at);
          float& to = at < weights ? dw[geometry.WeightAt(of.o, of.channel, of.k, of.l)]
                                   : dbias[at - weights];
          to = static_cast<float>(accumulate ? to + sum : sum);
        });
  }

  void BackwardData(const KernelArgs& args) {
    const Geometry<T> geometry = geometry_;
    const T* const dy = args.output_gradients[0].as<const T>();
    const float* const w = args.params[0].f32();
    T* const dx = args.input_gradients[0].as<T>();
    const bool adds = args.adds_input_gradient;
    ForEach(queue_,
            {"convolution input gradient",
             {Reads(dy, results_), Reads(w, weights_), Stores(dx, inputs_, adds)}},
            inputs_, [=] DT_DEVICE(int64_t i) {
              const double sum = geometry.InputGradient(dy, w, static_cast<unsigned>(i));
              const double all = adds ? static_cast<float>(dx[i]) + sum : sum;
              dx[i] = static_cast<T>(static_cast<float>(all));
            });
  }

 private:
  CudaQueue& queue_;
  const Geometry<T> geometry_;
  const bool relu_;
  const int64_t inputs_, results_, weights_, biases_;
  const ColumnSums lines_;  // for the gradients of weights and biases
  FloatRoom room_;
  int64_t partial_ = 0;
};

// A layer of so few products a sample takes less time than cuDNN's kernels for few channels, which took 54 and 256 us for
// the weights' gradients of LeNet-5's two layers at batch 64 on an H200.  A thread that adds up many of them would wait
// for memory at each step.
constexpr int64_t kFewProducts = 500'000, kShort = 1024;

std::optional<KernelOffer> OfferConvolutionDirectCuda(const KernelRequest& request) {
  const Shape &y = request.outputs[0], weights = request.layer->Params()[0].shape;
  const int64_t products = weights.count() * y.CountFrom(2);
  const bool few = products <= kFewProducts && weights.CountFrom(1) <= kShort;
  KernelOffer offer = OfferImages(request, FactorTypeOf(request.device.precision));
  // Others run here only if the plan names it or "cudnn" hands the layer over to it.
  offer.preference = few ? 10 : -10;
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
