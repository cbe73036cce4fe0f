// Pooling on the GPU, implementation "direct": channels last, a thread for each output, backward for
// each input, so that nothing is added in an order that changes.  Not cuDNN's, which would have x and
// y kept for a maximum where a byte of each window is enough.
#include "framework/kernels/cuda/images.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/nn/kernel.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

constexpr uint8_t kClosed = 255;  // ReLU has closed: no pixel takes the gradient

struct Span {
  int64_t begin, end;
};

// The rows of an image and of its windows, or the columns.
struct Axis {
  int64_t pixels, windows, kernel, stride, pad;

  // The first pixel of a window, which may be outside of the image.
  DT_DEVICE int64_t StartOf(int64_t window) const { return window * stride - pad; }
  // The pixels of a window that are in the image.
  DT_DEVICE Span PixelsOf(int64_t window) const {
    const int64_t start = StartOf(window), end = start + kernel;
    return {start < 0 ? 0 : start, end < pixels ? end : pixels};
  }
  // The windows that a pixel is in.
  DT_DEVICE Span WindowsOf(int64_t pixel) const {
    const int64_t before = pixel + pad - kernel, last = (pixel + pad) / stride;
    return {before < 0 ? 0 : before / stride + 1, last < windows ? last + 1 : windows};
  }
};

struct Place {
  int64_t image, row, column, channel;
};

struct Map {
  Axis rows, columns;
  int64_t channels;
  float share;  // of a pixel in a mean

  DT_DEVICE static Place PlaceIn(int64_t i, int64_t rows, int64_t columns, int64_t channels) {
    const int64_t pixel = i / channels;
    return {pixel / columns / rows, pixel / columns % rows, pixel % columns, i % channels};
  }
  DT_DEVICE Place Output(int64_t i) const {
    return PlaceIn(i, rows.windows, columns.windows, channels);
  }
  DT_DEVICE Place Input(int64_t i) const {
    return PlaceIn(i, rows.pixels, columns.pixels, channels);
  }
  DT_DEVICE int64_t OutputAt(const Place& p, int64_t row, int64_t column) const {
    return ((p.image * rows.windows + row) * columns.windows + column) * channels + p.channel;
  }
  DT_DEVICE int64_t InputAt(const Place& p, int64_t row, int64_t column) const {
    return ((p.image * rows.pixels + row) * columns.pixels + column) * channels + p.channel;
  }
  // The place of a pixel in a window.
  DT_DEVICE int64_t InWindow(int64_t window_row, int64_t window_column, int64_t row,
                             int64_t column) const {
    return (row - rows.StartOf(window_row)) * columns.kernel + column -
           columns.StartOf(window_column);
  }

  // Output i, and the place of the pixel that it is: of equal ones the first; a NaN is never lost.
  DT_DEVICE float Largest(const float* x, int64_t i, uint8_t* winner) const {
    const Place out = Output(i);
    const Span height = rows.PixelsOf(out.row), width = columns.PixelsOf(out.column);
    float largest = 0;
    int64_t best = -1;
    for (int64_t row = height.begin; row < height.end; ++row) {
      for (int64_t column = width.begin; column < width.end; ++column) {
        const float value = x[InputAt(out, row, column)];
        if (best >= 0 && !(value > largest) && value == value) continue;
        largest = value;
        best = InWindow(out.row, out.column, row, column);
      }
    }
    *winner = static_cast<uint8_t>(best);
    return largest;
  }

  DT_DEVICE float Mean(const float* x, int64_t i) const {
    const Place out = Output(i);
    const Span height = rows.PixelsOf(out.row), width = columns.PixelsOf(out.column);
    float sum = 0;
    for (int64_t row = height.begin; row < height.end; ++row) {
      for (int64_t column = width.begin; column < width.end; ++column) {
        sum += x[InputAt(out, row, column)];
      }
    }
    return sum * share;
  }

  // What input i gets from the windows that it is in; winners null: means, each with its share.
  DT_DEVICE float Gradient(const float* dy, const uint8_t* winners, int64_t i) const {
    const Place in = Input(i);
    const Span down = rows.WindowsOf(in.row), across = columns.WindowsOf(in.column);
    float sum = 0;
    for (int64_t row = down.begin; row < down.end; ++row) {
      for (int64_t column = across.begin; column < across.end; ++column) {
        const int64_t out = OutputAt(in, row, column);
        if (winners == nullptr) {
          sum += dy[out] * share;
        } else if (winners[out] == InWindow(row, column, in.row, in.column)) {
          sum += dy[out];
        }
      }
    }
    return sum;
  }
};

Map MapOf(const KernelRequest& request) {
  const auto& layer = static_cast<const Pooling&>(*request.layer);
  const Shape &x = request.inputs[0], &y = request.outputs[0];
  return {.rows = {x[2], y[2], layer.kernel_height(), layer.stride(), layer.pad()},
          .columns = {x[3], y[3], layer.kernel_width(), layer.stride(), layer.pad()},
          .channels = x[1],
          .share = 1.0f / static_cast<float>(layer.kernel_height() * layer.kernel_width())};
}

class PoolingCuda : public Kernel {
 public:
  explicit PoolingCuda(const KernelRequest& request)
      : queue_(QueueOf(request.device)),
        map_(MapOf(request)),
        is_max_(static_cast<const Pooling&>(*request.layer).is_max()),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        inputs_(request.inputs[0].count()),
        outputs_(request.outputs[0].count()) {}

  // Saved: the winner's place in each window.
  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (is_max_ && training_) needs.saved_bytes = static_cast<size_t>(outputs_);
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    const Map map = map_;
    const float* const x = args.inputs[0].f32();
    float* const y = args.outputs[0].f32();
    if (!is_max_) {
      ForEach(queue_, outputs_, [=] DT_DEVICE(int64_t i) { y[i] = map.Mean(x, i); });
      return;
    }
    uint8_t* const winners = training_ ? static_cast<uint8_t*>(args.saved) : nullptr;
    const bool relu = relu_;
    ForEach(queue_, outputs_, [=] DT_DEVICE(int64_t i) {
      uint8_t winner;
      const float largest = map.Largest(x, i, &winner);
      const bool closed = relu && largest <= 0;
      y[i] = closed ? 0 : largest;
      if (winners != nullptr) winners[i] = closed ? kClosed : winner;
    });
  }

  void Backward(const KernelArgs& args) override {
    const Map map = map_;
    const float* const dy = args.output_gradients[0].f32();
    const uint8_t* const winners = is_max_ ? static_cast<const uint8_t*>(args.saved) : nullptr;
    float* const dx = args.input_gradients[0].f32();
    if (dx == nullptr) return;
    ForEach(queue_, inputs_, [=] DT_DEVICE(int64_t i) { dx[i] = map.Gradient(dy, winners, i); });
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
  if (request.fused_relu && !request.layer->commutes_with_relu()) return std::nullopt;
  return OfferImage(request);
}

std::unique_ptr<Kernel> MakePoolingCuda(const KernelRequest& request, const KernelOffer&) {
  return std::make_unique<PoolingCuda>(request);
}

DTRAIN_KERNEL("pooling", DeviceKind::kCuda, "direct", OfferPoolingCuda, MakePoolingCuda);

}  // namespace
}  // namespace dtrain
