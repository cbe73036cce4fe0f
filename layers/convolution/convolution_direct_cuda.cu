// Implements convolution on the GPU directly from the definition, for layers with few products, and for groups, dilation
// or different sides if cuDNN has no deterministic kernel (convolution_cuda.cc).  One thread computes an element of y or
// dx.  The gradients of weights and biases are sums over the lines of y: a thread adds up what its lines contribute to
// one of them.  Sums are double, in an order that depends only on the shape.  With `precision: bf16` or fp16 images have 16
// bits and weights are rounded, as for cuDNN; with tf32 nothing is.
//
// Max pooling behind it is done by the same kernels, if no windows overlap: a thread computes the pixels of a window and
// writes the largest.  In the backward pass only the winners have gradients, so that a line is a row of windows.  The
// values are those of two layers, whose images in between would be four times as large as what is written.
#include "framework/kernels/cuda/column_sums.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/pooling_map.h"
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

// Elements that are read as T.  They may be floats (`wide`), which are rounded then.
template <class T>
struct Elements {
  const void* data;
  bool wide;

  Elements(const Tensor& images) : data(images.data), wide(images.dtype == DType::kF32) {}
  DT_DEVICE T operator[](int64_t i) const {
    return wide ? static_cast<T>(static_cast<const float*>(data)[i])
                : static_cast<const T*>(data)[i];
  }
};

struct Pixel {
  unsigned image;
  int row, column;
  unsigned first;  // output
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
  DT_DEVICE double Result(const Elements<T>& x, const float* w, unsigned i) const {
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
        const int64_t at = InputAt(line / rows.results, row, column) + first;
        for (unsigned c = 0; c < group_channels; ++c) {
          sum += Product(x[at + c], w[WeightAt(o, c, k, l)]);
        }
      }
    }
    return sum;
  }

  // Returns dx[i].
  template <class Gradient>
  DT_DEVICE double InputGradient(const Gradient& gradient, const float* w, unsigned i) const {
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
        gradient.OfPixel(*this, {line / rows.pixels, row, column, first}, [&](unsigned o, T value) {
          sum += Product(value, w[WeightAt(first + o, channel % group_channels, k, l)]);
        });
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

  // Returns what a line contributes to the gradient of a weight.
  template <class Gradient>
  DT_DEVICE double WeightTerm(const Elements<T>& x, const Gradient& gradient, const Weight& of,
                              unsigned line) const {
    const unsigned channel = of.o / group_outputs * group_channels + of.channel;
    double sum = 0;
    gradient.OfLine(*this, line, of.o, [&](unsigned image, int at_row, int at_column, T value) {
      const int row = rows.PixelOf(at_row, of.k), column = columns.PixelOf(at_column, of.l);
      if (row < 0 || column < 0) return;
      sum += static_cast<double>(static_cast<float>(x[InputAt(image, row, column) + channel])) *
             static_cast<float>(value);
    });
    return sum;
  }
  // The same for the bias of output o.
  template <class Gradient>
  DT_DEVICE double BiasTerm(const Gradient& gradient, unsigned o, unsigned line) const {
    double sum = 0;
    gradient.OfLine(*this, line, o,
                    [&](unsigned, int, int, T value) { sum += static_cast<float>(value); });
    return sum;
  }
};

// The gradient by the convolution's results.  A line is a row of them.
template <class T>
struct ResultGradient {
  const T* dy;

  // Calls f(image, row, column, value) for the results of an output in a line.
  template <class F>
  DT_DEVICE void OfLine(const Geometry<T>& of, unsigned line, unsigned o, const F& f) const {
    const unsigned image = line / of.rows.results;
    const int row = static_cast<int>(line % of.rows.results);
    const T* const values = dy + of.OutputAt(image, row, 0) + o;
    for (int column = 0; column < of.columns.results; ++column) {
      f(image, row, column, values[int64_t{column} * of.outputs]);
    }
  }
  // Calls f(i, value) for output at.first + i of a group at a pixel.
  template <class F>
  DT_DEVICE void OfPixel(const Geometry<T>& of, const Pixel& at, const F& f) const {
    const T* const values = dy + of.OutputAt(at.image, at.row, at.column) + at.first;
    for (unsigned o = 0; o < of.group_outputs; ++o) f(o, values[o]);
  }
};

// The same behind max pooling: the gradient of a winner is its window's, that of others is 0, and they are left out.  A
// line is a row of windows.
template <class T>
struct WinnerGradient {
  PoolingMap map;
  const uint8_t* winners;
  Elements<T> dy;

  template <class F>
  DT_DEVICE void OfLine(const Geometry<T>&, unsigned line, unsigned o, const F& f) const {
    const PoolingAxis &rows = map.windows.rows, &columns = map.windows.columns;
    const auto lines = static_cast<unsigned>(rows.windows);
    const PoolingPlace first = {line / lines, line % lines, 0, o};
    for (int64_t column = 0; column < columns.windows; ++column) {
      const int64_t i = map.OutputAt(first, first.row, column);
      const unsigned winner = winners[i];
      if (winner == kNoPixel<uint8_t>) continue;
      const auto across = static_cast<unsigned>(columns.kernel);
      f(line / lines, static_cast<int>(rows.StartOf(first.row) + winner / across),
        static_cast<int>(columns.StartOf(column) + winner % across), dy[i]);
    }
  }
  template <class F>
  DT_DEVICE void OfPixel(const Geometry<T>& of, const Pixel& at, const F& f) const {
    const PoolingSpan down = map.windows.rows.WindowsOf(at.row),
                      across = map.windows.columns.WindowsOf(at.column);
    if (down.begin >= down.end || across.begin >= across.end) return;  // between windows
    const int64_t place = map.InWindow(down.begin, across.begin, at.row, at.column);
    for (unsigned o = 0; o < of.group_outputs; ++o) {
      const int64_t i = map.OutputAt({at.image, 0, 0, at.first + o}, down.begin, across.begin);
      if (winners[i] == place) f(o, dy[i]);
    }
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
  ConvolutionDirectCuda(const KernelRequest& request, const KernelOffer& offer)
      : queue_(QueueOf(request.device)),
        geometry_(GeometryOf<T>(request)),
        pools_(request.pooling != nullptr),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        inputs_(request.inputs[0].count()),
        weights_(request.layer->Params()[0].shape.count()),
        biases_(request.layer->Params().size() > 1 ? request.outputs[0][1] : 0),
        map_(MapOf(request, offer)),
        rows_(pools_ ? map_.windows.rows.windows : request.outputs[0][2]),
        columns_(pools_ ? map_.windows.columns.windows : request.outputs[0][3]),
        outputs_(request.outputs[0][0] * request.outputs[0][1] * rows_ * columns_),
        wide_(offer.outputs[0].dtype == DType::kF32),
        lines_(request.device, request.outputs[0][0] * rows_, weights_ + biases_) {
    if (training_) partial_ = room_.Take(2 * lines_.partial_sums());
  }

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    needs.scratch_bytes = room_.bytes();
    if (pools_ && training_) needs.saved_bytes = static_cast<size_t>(outputs_);
    needs.backward_reads_inputs = true;
    needs.backward_reads_outputs = relu_ && !pools_;
    needs.backward_adds = true;
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    if (pools_) return ForwardPooled(args);
    const Geometry<T> geometry = geometry_;
    const Elements<T> x = args.inputs[0];
    const float* const w = args.params[0].f32();
    const float* const bias = biases_ > 0 ? args.params[1].f32() : nullptr;
    T* const y = args.outputs[0].as<T>();
    const bool relu = relu_;
    ForEach(queue_,
            {"convolution",
             {ReadsOf(args.inputs[0], inputs_), Reads(w, weights_), Reads(bias, biases_),
              Writes(y, outputs_)}},
            outputs_, [=] DT_DEVICE(int64_t i) {
              const auto element = static_cast<unsigned>(i);
              auto value = static_cast<float>(geometry.Result(x, w, element));
              if (bias != nullptr) value += bias[element % geometry.outputs];
              y[i] = static_cast<T>(relu && value < 0 ? 0.0f : value);  // keeps a NaN
            });
  }

  void ForwardPooled(const KernelArgs& args) {
    const Geometry<T> geometry = geometry_;
    const PoolingMap map = map_;
    const Elements<T> x = args.inputs[0];
    const float* const w = args.params[0].f32();
    const float* const bias = biases_ > 0 ? args.params[1].f32() : nullptr;
    void* const y = args.outputs[0].data;
    uint8_t* const winners = training_ ? static_cast<uint8_t*>(args.saved) : nullptr;
    const bool relu = relu_, wide = wide_;
    ForEach(queue_,
            {"convolution and max pooling",
             {ReadsOf(args.inputs[0], inputs_), Reads(w, weights_), Reads(bias, biases_),
              WritesOf(args.outputs[0], outputs_), Writes(winners, outputs_)}},
            outputs_, [=] DT_DEVICE(int64_t i) {
              // Rounded as the image that would be pooled.
              const auto value_at = [=](int64_t at) {
                const auto element = static_cast<unsigned>(at);
                auto value = static_cast<float>(geometry.Result(x, w, element));
                if (bias != nullptr) value += bias[element % geometry.outputs];
                return static_cast<float>(static_cast<T>(value));
              };
              int64_t winner;
              const float largest = map.Largest(value_at, i, &winner);
              const bool closed = relu && largest <= 0;
              const float result = closed ? 0.0f : largest;
              if (wide) {
                static_cast<float*>(y)[i] = result;
              } else {
                static_cast<T*>(y)[i] = static_cast<T>(result);
              }
              if (winners != nullptr) {
                winners[i] = closed ? kNoPixel<uint8_t> : static_cast<uint8_t>(winner);
              }
            });
  }

  void Backward(const KernelArgs& args) override {
    if (pools_) {
      const auto* const winners = static_cast<const uint8_t*>(args.saved);
      return Gradients(args, winners, WinnerGradient<T>{map_, winners, args.output_gradients[0]});
    }
    if (relu_) MaskGradient(queue_, args.outputs[0], args.output_gradients[0]);
    Gradients(args, nullptr, ResultGradient<T>{args.output_gradients[0].as<const T>()});
  }

  template <class Gradient>
  void Gradients(const KernelArgs& args, const uint8_t* winners, const Gradient& gradient) {
    const Geometry<T> geometry = geometry_;
    const Elements<T> x = args.inputs[0];
    const float* const w = args.params[0].f32();
    float* const dw = args.param_gradients[0].f32();
    float* const dbias = biases_ > 0 ? args.param_gradients[1].f32() : nullptr;
    T* const dx = args.input_gradients[0].as<T>();
    const int64_t inputs = dx == nullptr ? 0 : inputs_;
    const bool accumulate = args.accumulate, adds = args.adds_input_gradient;
    const auto weights = static_cast<unsigned>(weights_);
    SumColumns(
        queue_,
        {"convolution gradients",
         {ReadsOf(args.inputs[0], inputs_), ReadsOf(args.output_gradients[0], outputs_),
          Reads(winners, outputs_), Reads(w, dx == nullptr ? 0 : weights_)}},
        {Stores(dw, weights_, accumulate), Stores(dbias, biases_, accumulate),
         Stores(dx, inputs, adds)},
        lines_, reinterpret_cast<double*>(static_cast<float*>(args.scratch) + partial_),
        [=] DT_DEVICE(int64_t line, int64_t i) -> double {
          const auto at = static_cast<unsigned>(i), of_line = static_cast<unsigned>(line);
          return at < weights ? geometry.WeightTerm(x, gradient, geometry.WeightOf(at), of_line)
                              : geometry.BiasTerm(gradient, at - weights, of_line);
        },
        [=] DT_DEVICE(int64_t i, double sum) {
          const auto at = static_cast<unsigned>(i);
          const auto of = geometry.WeightOf(at);
          float& to = at < weights ? dw[geometry.WeightAt(of.o, of.channel, of.k, of.l)]
                                   : dbias[at - weights];
          to = static_cast<float>(accumulate ? to + sum : sum);
        },
        Beside{inputs, [=] DT_DEVICE(int64_t i) {
                 const double sum = geometry.InputGradient(gradient, w, static_cast<unsigned>(i));
                 const double all = adds ? static_cast<float>(dx[i]) + sum : sum;
                 dx[i] = static_cast<T>(static_cast<float>(all));
               }});
  }

 private:
  static PoolingMap MapOf(const KernelRequest& request, const KernelOffer& offer) {
    return {request.pooling == nullptr ? PoolingWindows() : *request.pooling, request.outputs[0][1],
            offer.outputs[0].format == Format::kPlain};
  }
  // Of images of either type.
  static Access ReadsOf(const Tensor& images, int64_t count) {
    return Reads(static_cast<const std::byte*>(images.data), count * SizeOf(images.dtype));
  }
  static Access WritesOf(const Tensor& images, int64_t count) {
    return Writes(static_cast<std::byte*>(images.data), count * SizeOf(images.dtype));
  }

  CudaQueue& queue_;
  const Geometry<T> geometry_;
  const bool pools_, relu_, training_;
  const int64_t inputs_, weights_, biases_;
  const PoolingMap map_;                    // if pools_
  const int64_t rows_, columns_, outputs_;  // of y, pooled or not
  const bool wide_;                         // y are floats, whatever T is
  const ColumnSums lines_;                  // for the gradients of weights and biases
  FloatRoom room_;
  int64_t partial_ = 0;
};

// True if a thread may compute all pixels of a window: they are few, and belong to no other.
bool FewPixelsApart(const PoolingWindows& windows) {
  const auto apart = [](const PoolingAxis& axis) {
    return !axis.adaptive && (axis.windows == 1 || axis.stride >= axis.kernel);
  };
  return apart(windows.rows) && apart(windows.columns) && windows.MostPixels() <= 16;
}

// A layer of so few products a sample takes less time than cuDNN's kernels for few channels, which took 54 and 256 us for
// the weights' gradients of LeNet-5's two layers at batch 64 on an H200.  A thread that adds up many of them would wait
// for memory at each step.
constexpr int64_t kFewProducts = 500'000, kShort = 1024;

std::optional<KernelOffer> OfferConvolutionDirectCuda(const KernelRequest& request) {
  const Shape &y = request.outputs[0], weights = request.layer->Params()[0].shape;
  const int64_t products = weights.count() * y.CountFrom(2);
  const bool few = products <= kFewProducts && weights.CountFrom(1) <= kShort;
  KernelOffer offer = OfferImages(request, FactorTypeOf(request.device.precision));
  // The floats of a batch need no pass that rounds them.
  const Form wide = ImageFormat(request.inputs[0]);
  if (request.available[0] == wide && !request.needs_input_gradient[0]) offer.inputs[0] = wide;
  // Others run here only if the plan names it or "cudnn" hands the layer over to it.
  offer.preference = few ? 10 : -10;
  if (const PoolingWindows* const windows = request.pooling) {
    offer.pools = few && FewPixelsApart(*windows);
    const Shape pooled = {y[0], y[1], windows->rows.windows, windows->columns.windows};
    // As that of pooling: the readers of a single pixel take fp32 as well.
    const bool plain = request.read_as_plain || pooled.CountFrom(2) == 1;
    offer.outputs = {plain ? Form() : Form(ImageFormat(pooled), offer.outputs[0].dtype)};
  }
  return offer;
}

DTRAIN_KERNEL("convolution", DeviceKind::kCuda, "direct", OfferConvolutionDirectCuda,
              MakeConvolutionDirectCuda);

}  // namespace

std::unique_ptr<Kernel> MakeConvolutionDirectCuda(const KernelRequest& request,
                                                  const KernelOffer& offer) {
  const DType factors = FactorTypeOf(request.device.precision);
  return WithElementType(factors, [&]<class T>() -> std::unique_ptr<Kernel> {
    return std::make_unique<ConvolutionDirectCuda<T>>(request, offer);
  });
}

}  // namespace dtrain
