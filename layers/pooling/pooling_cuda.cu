// Implements pooling on the GPU under the name "direct", in the format of its input.  One thread computes each output, in
// the backward pass each input's gradient, so the order of additions is fixed. cuDNN's pooling is not used: for a
// maximum it requires x and y to be kept, whereas a byte per window is enough.
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

struct Place {
  int64_t image, row, column, channel;
};

// Where the elements of images are in memory.
struct Images {
  int64_t rows, columns, channels;
  bool plain;  // else channels last

  DT_DEVICE Place Of(int64_t i) const {
    if (plain) {
      const int64_t line = i / columns, plane = line / rows;
      return {plane / channels, line % rows, i % columns, plane % channels};
    }
    const int64_t pixel = i / channels;
    return {pixel / columns / rows, pixel / columns % rows, pixel % columns, i % channels};
  }
  // Returns where a pixel is of the image and the channel of `p`.
  DT_DEVICE int64_t At(const Place& p, int64_t row, int64_t column) const {
    if (plain) return ((p.image * channels + p.channel) * rows + row) * columns + column;
    return ((p.image * rows + row) * columns + column) * channels + p.channel;
  }
};

struct Map {
  PoolingWindows windows;
  Images input, output;

  // Returns the index of a pixel in a window.
  DT_DEVICE int64_t InWindow(int64_t window_row, int64_t window_column, int64_t row,
                             int64_t column) const {
    return (row - windows.rows.StartOf(window_row)) * windows.columns.kernel + column -
           windows.columns.StartOf(window_column);
  }

  // Returns output i of max pooling, and the index of its pixel in the window in *winner.  Of equal pixels the first
  // wins; a NaN propagates.
  template <class T>
  DT_DEVICE float Largest(const T* x, int64_t i, int64_t* winner) const {
    const Place out = output.Of(i);
    const PoolingSpan height = windows.rows.PixelsOf(out.row),
                      width = windows.columns.PixelsOf(out.column);
    float largest = 0;
    int64_t best = -1;
    for (int64_t row = height.begin; row < height.end; ++row) {
      for (int64_t column = width.begin; column < width.end; ++column) {
        const auto value = static_cast<float>(x[input.At(out, row, column)]);
        if (best >= 0 && !(value > largest) && value == value) continue;
        largest = value;
        best = InWindow(out.row, out.column, row, column);
      }
    }
    *winner = best;
    return largest;
  }

  template <class T>
  DT_DEVICE float Mean(const T* x, int64_t i) const {
    const Place out = output.Of(i);
    const PoolingSpan height = windows.rows.PixelsOf(out.row),
                      width = windows.columns.PixelsOf(out.column);
    float sum = 0;
    for (int64_t row = height.begin; row < height.end; ++row) {
      for (int64_t column = width.begin; column < width.end; ++column) {
        sum += static_cast<float>(x[input.At(out, row, column)]);
      }
    }
    return sum * windows.ShareOf(out.row, out.column);
  }

  // Returns the gradient by input i: the sum over the windows that contain it.  `winners` is null for average pooling.
  template <class T, class Winner>
  DT_DEVICE float Gradient(const T* dy, const Winner* winners, int64_t i) const {
    const Place in = input.Of(i);
    const PoolingSpan down = windows.rows.WindowsOf(in.row),
                      across = windows.columns.WindowsOf(in.column);
    float sum = 0;
    for (int64_t row = down.begin; row < down.end; ++row) {
      for (int64_t column = across.begin; column < across.end; ++column) {
        const int64_t out = output.At(in, row, column);
        if (winners == nullptr) {
          sum += static_cast<float>(dy[out]) * windows.ShareOf(row, column);
        } else if (winners[out] == static_cast<Winner>(InWindow(row, column, in.row, in.column))) {
          sum += static_cast<float>(dy[out]);
        }
      }
    }
    return sum;
  }
};

Map MapOf(const KernelRequest& request, const KernelOffer& offer) {
  const PoolingWindows& windows = static_cast<const Pooling&>(*request.layer).windows();
  const int64_t channels = request.inputs[0][1];
  const auto is_plain = [](const Form& form) { return form.format == Format::kPlain; };
  return {windows,
          {windows.rows.pixels, windows.columns.pixels, channels, is_plain(offer.inputs[0])},
          {windows.rows.windows, windows.columns.windows, channels, is_plain(offer.outputs[0])}};
}

template <class In, class Out>  // the types of the images
class PoolingCuda : public Kernel {
 public:
  PoolingCuda(const KernelRequest& request, const KernelOffer& offer)
      : queue_(QueueOf(request.device)),
        map_(MapOf(request, offer)),
        is_max_(static_cast<const Pooling&>(*request.layer).is_max()),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        inputs_(request.inputs[0].count()),
        outputs_(request.outputs[0].count()) {}

  // Max pooling saves the index of the largest pixel in each window.
  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (is_max_ && training_) {
      needs.saved_bytes = static_cast<size_t>(outputs_) * map_.windows.PlaceBytes();
    }
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    if (!is_max_) return ForwardMean(args);
    map_.windows.PlacesFitBytes() ? ForwardLargest<uint8_t>(args) : ForwardLargest<int32_t>(args);
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    map_.windows.PlacesFitBytes() ? BackwardBy<uint8_t>(args) : BackwardBy<int32_t>(args);
  }

  void ForwardMean(const KernelArgs& args) {
    const Map map = map_;
    const In* const x = args.inputs[0].as<const In>();
    Out* const y = args.outputs[0].as<Out>();
    ForEach(queue_, {"average pooling", {Reads(x, inputs_), Writes(y, outputs_)}}, outputs_,
            [=] DT_DEVICE(int64_t i) { y[i] = static_cast<Out>(map.Mean(x, i)); });
  }

  template <class Winner>
  void ForwardLargest(const KernelArgs& args) {
    const Map map = map_;
    const In* const x = args.inputs[0].as<const In>();
    Out* const y = args.outputs[0].as<Out>();
    Winner* const winners = training_ ? static_cast<Winner*>(args.saved) : nullptr;
    const bool relu = relu_;
    ForEach(queue_,
            {"max pooling", {Reads(x, inputs_), Writes(y, outputs_), Writes(winners, outputs_)}},
            outputs_, [=] DT_DEVICE(int64_t i) {
              int64_t winner;
              const float largest = map.Largest(x, i, &winner);
              const bool closed = relu && largest <= 0;
              y[i] = static_cast<Out>(closed ? 0 : largest);
              if (winners != nullptr) winners[i] = static_cast<Winner>(closed ? -1 : winner);
            });
  }

  template <class Winner>
  void BackwardBy(const KernelArgs& args) {
    const Map map = map_;
    const Out* const dy = args.output_gradients[0].as<const Out>();
    const Winner* const winners = is_max_ ? static_cast<const Winner*>(args.saved) : nullptr;
    In* const dx = args.input_gradients[0].as<In>();
    ForEach(
        queue_,
        {"pooling gradient", {Reads(dy, outputs_), Reads(winners, outputs_), Writes(dx, inputs_)}},
        inputs_,
        [=] DT_DEVICE(int64_t i) { dx[i] = static_cast<In>(map.Gradient(dy, winners, i)); });
  }

 private:
  CudaQueue& queue_;
  const Map map_;
  const bool is_max_;
  const bool relu_;
  const bool training_;
  const int64_t inputs_, outputs_;
};

std::optional<KernelOffer> OfferPoolingCuda(const KernelRequest& request) {
  if (request.fused_relu && request.layer->max_windows() == nullptr) return std::nullopt;
  KernelOffer offer = FollowImages(request);
  // The readers of a single pixel take fp32 as well.
  const Shape& y = request.outputs[0];
  const bool pixel = y.rank() == 4 && y.CountFrom(2) == 1;
  if (request.read_as_plain || pixel) offer.outputs = {Form()};
  return offer;
}

std::unique_ptr<Kernel> MakePoolingCuda(const KernelRequest& request, const KernelOffer& offer) {
  return WithElementType(offer.inputs[0].dtype, [&]<class In>() -> std::unique_ptr<Kernel> {
    if (offer.outputs[0].dtype == DType::kF32) {
      return std::make_unique<PoolingCuda<In, float>>(request, offer);
    }
    return std::make_unique<PoolingCuda<In, In>>(request, offer);
  });
}

DTRAIN_KERNEL("pooling", DeviceKind::kCuda, "direct", OfferPoolingCuda, MakePoolingCuda);

}  // namespace
}  // namespace dtrain
