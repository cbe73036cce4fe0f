// Implements convolution on the GPU directly from the definition, for layers with few products, and for groups, dilation
// or different sides if cuDNN has no deterministic kernel (convolution_cuda.cc).  One thread computes an element of y or
// dx.  The gradients of weights and biases are sums over the lines of y: a thread adds up what its lines contribute to
// one of them.  Sums are double, in an order that depends only on the shape.  With `precision: bf16` or fp16 images have 16
// bits and weights are rounded, as for cuDNN; with tf32 nothing is.
//
// Max pooling behind it is done by the same kernels, if no windows overlap: a thread computes the results of a window and
// writes the largest, which wins.  In the backward pass only winners have gradients, and a line is a row of windows.  The
// results have the bits of two layers, and the image between them is never in memory.  Gradients differ in the order of
// additions, and where x is infinite: a gradient of 0 times that is left out.
#include <cstdint>
#include <string>

#include "framework/core/error.h"
#include "framework/kernels/cuda/column_sums.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/nn/kernel.h"
#include "framework/nn/pooling_windows.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_direct_cuda.h"

namespace dtrain {
namespace {

// Returns an extent as an int, by which indices are divided.  Throws ShapeError if it is too large.
int ToInt(int64_t extent) {
  if (extent > INT32_MAX) throw ShapeError(std::to_string(extent) + " is too large a number");
  return static_cast<int>(extent);
}

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
  // Returns the tap of result i that is on a pixel, or -1 if there is none.
  DT_DEVICE int TapOf(int i, int pixel) const {
    const int from = pixel + pad - i * stride;
    const int tap = dilation == 1 || from < 0 ? from : from % dilation == 0 ? from / dilation : -1;
    return tap < kernel ? tap : -1;
  }
  // Return the first and the last result whose taps reach a pixel, or beyond it.
  DT_DEVICE int FirstOf(int pixel) const {
    const int from = pixel + pad - (kernel - 1) * dilation;
    return from > 0 ? (from + stride - 1) / stride : 0;
  }
  DT_DEVICE int LastOf(int pixel) const { return (pixel + pad) / stride; }
};

// One axis of the windows of max pooling over the results.
struct WindowSide {
  int windows, kernel, stride, pad;

  DT_DEVICE int StartOf(int window) const { return window * stride - pad; }
  // Returns the last window that begins at a result or before it.
  DT_DEVICE int UpTo(int result) const {
    const int window = (result + pad) / stride;
    return window < windows ? window : windows - 1;
  }
};

struct Place {
  unsigned image, channel;
  int row, column;
};

// The windows of all images.  A winner is a byte: its row in the window, and its column in the lower four bits.
struct Windows {
  WindowSide rows, columns;
  unsigned channels;
  bool plain;  // pooled images are [N, C, H, W], not channels last

  static constexpr uint8_t kNoWinner = kNoPixel<uint8_t>;
  static DT_DEVICE int RowOf(uint8_t winner) { return winner >> 4; }
  static DT_DEVICE int ColumnOf(uint8_t winner) { return winner & 15; }

  DT_DEVICE Place PlaceOf(unsigned i) const {
    const auto down = static_cast<unsigned>(rows.windows),
               across = static_cast<unsigned>(columns.windows);
    const unsigned pixel = plain ? i : i / channels;
    const auto column = static_cast<int>(pixel % across);
    const auto row = static_cast<int>(pixel / across % down);
    const unsigned rest = pixel / across / down;
    if (plain) return {rest / channels, rest % channels, row, column};
    return {rest, i % channels, row, column};
  }
  DT_DEVICE int64_t At(unsigned image, unsigned channel, int row, int column) const {
    if (plain) {
      return ((int64_t{image} * channels + channel) * rows.windows + row) * columns.windows +
             column;
    }
    return ((int64_t{image} * rows.windows + row) * columns.windows + column) * channels + channel;
  }
};

// Reads elements as T.  They may be floats (`wide`), which are rounded then.
template <class T>
struct RoundedElements {
  const void* data;
  bool wide;

  RoundedElements(const Tensor& images) : data(images.data), wide(images.dtype == DType::kF32) {}
  DT_DEVICE T operator[](int64_t i) const {
    return wide ? static_cast<T>(static_cast<const float*>(data)[i])
                : static_cast<const T*>(data)[i];
  }
};

// T is the type of images, to which the factors of products are rounded.  Indices are divided in 32 bits, which is several
// times as fast.
template <class T>
struct Geometry {
  Side rows, columns;
  unsigned channels, outputs;              // over all groups
  unsigned group_channels, group_outputs;  // of one group
  bool plain_x, plain_y;                   // [N, C, H, W]; else channels last

  static DT_DEVICE double Product(T image, float weight) {
    return static_cast<double>(static_cast<float>(image)) *
           static_cast<float>(static_cast<T>(weight));
  }

  DT_DEVICE int64_t InputAt(int64_t n, unsigned channel, int row, int column) const {
    if (plain_x) return ((n * channels + channel) * rows.pixels + row) * columns.pixels + column;
    return ((n * rows.pixels + row) * columns.pixels + column) * channels + channel;
  }
  DT_DEVICE int64_t OutputAt(int64_t n, unsigned o, int row, int column) const {
    if (plain_y) return ((n * outputs + o) * rows.results + row) * columns.results + column;
    return ((n * rows.results + row) * columns.results + column) * outputs + o;
  }
  // Return how far apart the channels of a pixel are.
  DT_DEVICE int64_t InputStep() const {
    return plain_x ? int64_t{rows.pixels} * columns.pixels : 1;
  }
  DT_DEVICE int64_t OutputStep() const {
    return plain_y ? int64_t{rows.results} * columns.results : 1;
  }
  DT_DEVICE unsigned WeightAt(unsigned o, unsigned channel, int k, int l) const {
    return ((o * group_channels + channel) * rows.kernel + k) * columns.kernel + l;
  }

  // Some results of one output in an image.
  template <int N>
  struct Places {
    unsigned image, o;
    int row[N], column[N];
    bool exist[N];
  };
  // Adds the products of results to sums, without the bias.  Their sums are independent, and a weight is read once.
  template <int N>
  DT_DEVICE void AddResults(const RoundedElements<T>& x, const float* w, const Places<N>& of,
                            double (&sums)[N]) const {
    const unsigned first = of.o / group_outputs * group_channels;
    const int64_t step = InputStep();
    for (int k = 0; k < rows.kernel; ++k) {
      for (int l = 0; l < columns.kernel; ++l) {
        int64_t at[N];
        bool inside[N];
        for (int n = 0; n < N; ++n) {
          const int row = rows.PixelOf(of.row[n], k), column = columns.PixelOf(of.column[n], l);
          inside[n] = of.exist[n] && row >= 0 && column >= 0;
          at[n] = InputAt(of.image, first, row, column);
        }
        for (unsigned c = 0; c < group_channels; ++c) {
          const float weight = w[WeightAt(of.o, c, k, l)];
          for (int n = 0; n < N; ++n) {
            if (inside[n]) sums[n] += Product(x[at[n] + c * step], weight);
          }
        }
      }
    }
  }

  // Returns a result without its bias.
  DT_DEVICE double Result(const RoundedElements<T>& x, const float* w, const Place& of) const {
    const Places<1> place = {of.image, of.channel, {of.row}, {of.column}, {true}};
    double sum[1] = {0};
    AddResults(x, w, place, sum);
    return sum[0];
  }

  // Returns the largest result of a window with its bias, rounded to T, and writes which it is to *winner.  Of equal
  // results the first wins; a NaN is larger than others.
  DT_DEVICE float Largest(const RoundedElements<T>& x, const float* w, const float* bias,
                          const Windows& windows, unsigned i, uint8_t* winner) const {
    constexpr int kAtOnce = 4;
    const Place place = windows.PlaceOf(i);
    float largest = 0;
    *winner = Windows::kNoWinner;
    for (int row = 0, column = 0; row < windows.rows.kernel;) {
      Places<kAtOnce> some = {place.image, place.channel};
      uint8_t codes[kAtOnce];
      for (int n = 0; n < kAtOnce; ++n) {
        some.row[n] = windows.rows.StartOf(place.row) + row;
        some.column[n] = windows.columns.StartOf(place.column) + column;
        some.exist[n] = row < windows.rows.kernel && some.row[n] >= 0 && some.column[n] >= 0 &&
                        some.row[n] < rows.results && some.column[n] < columns.results;
        codes[n] = static_cast<uint8_t>(row << 4 | column);
        if (++column < windows.columns.kernel) continue;
        column = 0;
        ++row;
      }
      double sums[kAtOnce] = {};
      AddResults(x, w, some, sums);
      for (int n = 0; n < kAtOnce; ++n) {
        if (!some.exist[n]) continue;
        auto value = static_cast<float>(sums[n]);
        if (bias != nullptr) value += bias[place.channel];
        value = static_cast<float>(static_cast<T>(value));
        if (*winner != Windows::kNoWinner && !(value > largest) && value == value) continue;
        largest = value;
        *winner = codes[n];
      }
    }
    return largest;
  }

  // Returns where element i is in images of these sizes.
  static DT_DEVICE Place PlaceOf(unsigned i, bool plain, unsigned channels, unsigned rows,
                                 unsigned columns) {
    const unsigned pixel = plain ? i : i / channels, line = pixel / columns;
    const auto row = static_cast<int>(line % rows), column = static_cast<int>(pixel % columns);
    const unsigned rest = line / rows;
    if (plain) return {rest / channels, rest % channels, row, column};
    return {rest, i % channels, row, column};
  }
  DT_DEVICE Place InputOf(unsigned i) const {
    return PlaceOf(i, plain_x, channels, static_cast<unsigned>(rows.pixels),
                   static_cast<unsigned>(columns.pixels));
  }
  DT_DEVICE Place OutputOf(unsigned i) const {
    return PlaceOf(i, plain_y, outputs, static_cast<unsigned>(rows.results),
                   static_cast<unsigned>(columns.results));
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
  DT_DEVICE double WeightTerm(const RoundedElements<T>& x, const Gradient& gradient,
                              const Weight& of, unsigned line) const {
    const unsigned channel = of.o / group_outputs * group_channels + of.channel;
    double sum = 0;
    gradient.OfLine(*this, line, of.o, [&](unsigned image, int at_row, int at_column, T value) {
      const int row = rows.PixelOf(at_row, of.k), column = columns.PixelOf(at_column, of.l);
      if (row < 0 || column < 0) return;
      sum += static_cast<double>(static_cast<float>(x[InputAt(image, channel, row, column)])) *
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
    for (int column = 0; column < of.columns.results; ++column) {
      f(image, row, column, dy[of.OutputAt(image, o, row, column)]);
    }
  }
  // Returns dx[i].
  DT_DEVICE double ByInput(const Geometry<T>& of, const float* w, unsigned i) const {
    const Place at = of.InputOf(i);
    const unsigned first = at.channel / of.group_channels * of.group_outputs;
    const int64_t step = of.OutputStep();
    double sum = 0;
    for (int k = 0; k < of.rows.kernel; ++k) {
      const int row = of.rows.ResultOf(at.row, k);
      for (int l = 0; l < of.columns.kernel && row >= 0; ++l) {
        const int column = of.columns.ResultOf(at.column, l);
        if (column < 0) continue;
        const T* const values = dy + of.OutputAt(at.image, first, row, column);
        for (unsigned o = 0; o < of.group_outputs; ++o) {
          sum += of.Product(values[o * step],
                            w[of.WeightAt(first + o, at.channel % of.group_channels, k, l)]);
        }
      }
    }
    return sum;
  }
};

// The same behind max pooling: the gradient of a winner is its window's; that of others is 0, and they are left out.  A
// line is a row of windows.
template <class T>
struct WinnerGradient {
  Windows windows;
  const uint8_t* winners;
  RoundedElements<T> dy;

  template <class F>
  DT_DEVICE void OfLine(const Geometry<T>&, unsigned line, unsigned o, const F& f) const {
    const auto lines = static_cast<unsigned>(windows.rows.windows);
    const unsigned image = line / lines;
    const auto row = static_cast<int>(line % lines);
    for (int column = 0; column < windows.columns.windows; ++column) {
      const int64_t i = windows.At(image, o, row, column);
      const uint8_t winner = winners[i];
      if (winner == Windows::kNoWinner) continue;
      f(image, windows.rows.StartOf(row) + Windows::RowOf(winner),
        windows.columns.StartOf(column) + Windows::ColumnOf(winner), dy[i]);
    }
  }
  DT_DEVICE double ByInput(const Geometry<T>& of, const float* w, unsigned i) const {
    const Place at = of.InputOf(i);
    const unsigned first = at.channel / of.group_channels * of.group_outputs;
    const int last_row = windows.rows.UpTo(of.rows.LastOf(at.row));
    const int last_column = windows.columns.UpTo(of.columns.LastOf(at.column));
    double sum = 0;
    for (int row = windows.rows.UpTo(of.rows.FirstOf(at.row)); row <= last_row; ++row) {
      for (int column = windows.columns.UpTo(of.columns.FirstOf(at.column)); column <= last_column;
           ++column) {
        const int from_row = windows.rows.StartOf(row),
                  from_column = windows.columns.StartOf(column);
        for (unsigned o = 0; o < of.group_outputs; ++o) {
          const int64_t window = windows.At(at.image, first + o, row, column);
          const uint8_t winner = winners[window];
          if (winner == Windows::kNoWinner) continue;
          const int k = of.rows.TapOf(from_row + Windows::RowOf(winner), at.row);
          const int l = of.columns.TapOf(from_column + Windows::ColumnOf(winner), at.column);
          if (k < 0 || l < 0) continue;
          sum += of.Product(dy[window],
                            w[of.WeightAt(first + o, at.channel % of.group_channels, k, l)]);
        }
      }
    }
    return sum;
  }
};

template <class T>
Geometry<T> GeometryOf(const KernelRequest& request, const KernelOffer& offer) {
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
          all(y[1] / layer.groups()),
          offer.inputs[0].format == Format::kPlain,
          offer.outputs[0].format == Format::kPlain};
}

// The shape of what is written: of the convolution's results, or of their maxima.
Shape OutputOf(const KernelRequest& request) {
  const Shape& y = request.outputs[0];
  if (request.pooling == nullptr) return y;
  return {y[0], y[1], request.pooling->rows.windows, request.pooling->columns.windows};
}

template <class T>
class ConvolutionDirectCuda : public Kernel {
 public:
  ConvolutionDirectCuda(const KernelRequest& request, const KernelOffer& offer)
      : queue_(QueueOf(request.device)),
        geometry_(GeometryOf<T>(request, offer)),
        pools_(request.pooling != nullptr),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        inputs_(request.inputs[0].count()),
        weights_(request.layer->Params()[0].shape.count()),
        biases_(request.layer->Params().size() > 1 ? request.outputs[0][1] : 0),
        windows_(WindowsOf(request, offer)),
        outputs_(OutputOf(request).count()),
        lines_(request.device, {request.outputs[0][0] * OutputOf(request)[2], weights_ + biases_}) {
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
    const RoundedElements<T> x = args.inputs[0];
    const float* const w = args.params[0].f32();
    const float* const bias = biases_ > 0 ? args.params[1].f32() : nullptr;
    T* const y = args.outputs[0].as<T>();
    const bool relu = relu_;
    ForEach(
        queue_,
        {"convolution",
         {ReadsOf(args.inputs[0]), Reads(w, weights_), Reads(bias, biases_), Writes(y, outputs_)}},
        outputs_, [=] DT_DEVICE(int64_t i) {
          const Place of = geometry.OutputOf(static_cast<unsigned>(i));
          auto value = static_cast<float>(geometry.Result(x, w, of));
          if (bias != nullptr) value += bias[of.channel];
          y[i] = static_cast<T>(relu && value < 0 ? 0.0f : value);  // keeps a NaN
        });
  }

  void ForwardPooled(const KernelArgs& args) {
    const Geometry<T> geometry = geometry_;
    const Windows windows = windows_;
    const RoundedElements<T> x = args.inputs[0];
    const float* const w = args.params[0].f32();
    const float* const bias = biases_ > 0 ? args.params[1].f32() : nullptr;
    void* const y = args.outputs[0].data;
    uint8_t* const winners = training_ ? static_cast<uint8_t*>(args.saved) : nullptr;
    const bool relu = relu_, wide = args.outputs[0].dtype == DType::kF32;
    ForEach(queue_,
            {"convolution and max pooling",
             {ReadsOf(args.inputs[0]), Reads(w, weights_), Reads(bias, biases_),
              WritesOf(args.outputs[0]), Writes(winners, outputs_)}},
            outputs_, [=] DT_DEVICE(int64_t i) {
              uint8_t winner;
              const float largest =
                  geometry.Largest(x, w, bias, windows, static_cast<unsigned>(i), &winner);
              const bool closed = relu && largest <= 0;
              const float result = closed ? 0.0f : largest;
              if (wide) {
                static_cast<float*>(y)[i] = result;
              } else {
                static_cast<T*>(y)[i] = static_cast<T>(result);
              }
              if (winners != nullptr) winners[i] = closed ? Windows::kNoWinner : winner;
            });
  }

  void Backward(const KernelArgs& args) override {
    if (pools_) {
      const auto* const winners = static_cast<const uint8_t*>(args.saved);
      return Gradients(args, winners,
                       WinnerGradient<T>{windows_, winners, args.output_gradients[0]});
    }
    if (relu_) MaskGradient(queue_, args.outputs[0], args.output_gradients[0]);
    Gradients(args, nullptr, ResultGradient<T>{args.output_gradients[0].as<const T>()});
  }

  template <class Gradient>
  void Gradients(const KernelArgs& args, const uint8_t* winners, const Gradient& gradient) {
    const Geometry<T> geometry = geometry_;
    const RoundedElements<T> x = args.inputs[0];
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
         {ReadsOf(args.inputs[0]), ReadsOf(args.output_gradients[0]), Reads(winners, outputs_),
          Reads(w, dx == nullptr ? 0 : weights_)}},
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
                 const double sum = gradient.ByInput(geometry, w, static_cast<unsigned>(i));
                 const double all = adds ? static_cast<float>(dx[i]) + sum : sum;
                 dx[i] = static_cast<T>(static_cast<float>(all));
               }});
  }

 private:
  static Windows WindowsOf(const KernelRequest& request, const KernelOffer& offer) {
    if (request.pooling == nullptr) return {};
    const auto side = [](const PoolingAxis& of) -> WindowSide {
      return {ToInt(of.windows), ToInt(of.kernel), ToInt(of.stride), ToInt(of.pad)};
    };
    return {side(request.pooling->rows), side(request.pooling->columns),
            static_cast<unsigned>(ToInt(request.outputs[0][1])),
            offer.outputs[0].format == Format::kPlain};
  }
  // Return the access to images, whatever their type is.
  static Access ReadsOf(const Tensor& images) {
    return Reads(static_cast<const std::byte*>(images.data), BytesOf(images));
  }
  static Access WritesOf(const Tensor& images) {
    return Writes(static_cast<std::byte*>(images.data), BytesOf(images));
  }
  static int64_t BytesOf(const Tensor& images) {
    return images.shape.count() * static_cast<int64_t>(SizeOf(images.dtype));
  }

  CudaQueue& queue_;
  const Geometry<T> geometry_;
  const bool pools_, relu_, training_;
  const int64_t inputs_, weights_, biases_;
  const Windows windows_;   // if pools_
  const int64_t outputs_;   // written, pooled or not
  const ColumnSums lines_;  // for the gradients of weights and biases
  FloatRoom room_;
  int64_t partial_ = 0;
};

// True if a thread may compute all results of a window: they are few, and belong to no other.
bool FewApart(const PoolingWindows& windows) {
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
  const bool fp32 = request.device.precision == Precision::kFp32;
  // In fp32 cuDNN's convolutions read and write plain images (convolution_cuda.cc).
  KernelOffer offer = OfferImages(request, fp32 ? Format::kPlain : Format::kChannelsLast,
                                  FactorTypeOf(request.device.precision));
  if (fp32) offer.inputs[0] = request.available[0].format;
  // The floats of a batch need no pass that rounds them.
  const Form wide = ImageFormat(request.inputs[0]);
  if (request.available[0] == wide && !request.needs_input_gradient[0]) offer.inputs[0] = wide;
  // Others run here only if the plan names it or "cudnn" hands the layer over to it.
  offer.preference = few ? 10 : -10;
  if (const PoolingWindows* const windows = request.pooling) {
    offer.pools = few && FewApart(*windows);
    const Shape pooled = OutputOf(request);
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
