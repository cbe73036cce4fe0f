// Pooling on the CPU, implementation "direct": any format, straight from the definition.
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

constexpr uint8_t kClosed = 255;  // ReLU has closed: no pixel takes the gradient

// Where element (n, c, row, column) of an image tensor lies; n and c start at 0 in each call.
struct Strides {
  int64_t channel, row, column;
};

Strides StridesOf(const Shape& shape, Format format) {
  if (format == Format::kChannelsLast) return {1, shape[3] * shape[1], shape[1]};
  return {shape[2] * shape[3], shape[3], 1};
}

class PoolingDirect : public Kernel {
 public:
  PoolingDirect(const KernelRequest& request, const KernelOffer& offer)
      : device_(request.device),
        layer_(static_cast<const Pooling&>(*request.layer)),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        in_(request.inputs[0]),
        out_(request.outputs[0]),
        in_strides_(StridesOf(in_, offer.inputs[0])),
        out_strides_(StridesOf(out_, offer.outputs[0])) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (layer_.is_max() && training_) needs.saved_bytes = out_.count();
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    ParallelFor(device_.threads, in_[0], [&](int64_t n) {
      const float* const x = args.inputs[0].f32() + n * in_.CountFrom(1);
      float* const y = args.outputs[0].f32() + n * out_.CountFrom(1);
      uint8_t* const saved = static_cast<uint8_t*>(args.saved);
      ForEachOutput([&](int64_t at, int64_t first, const Window& window) {
        if (layer_.is_max()) {
          const uint8_t winner = TakeLargest(x + first, window, &y[at]);
          if (training_) saved[n * out_.CountFrom(1) + at] = winner;
        } else {
          y[at] = Sum(x + first, window) * Share();
        }
      });
    });
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    ParallelFor(device_.threads, in_[0], [&](int64_t n) {
      const float* const dy = args.output_gradients[0].f32() + n * out_.CountFrom(1);
      float* const dx = args.input_gradients[0].f32() + n * in_.CountFrom(1);
      const uint8_t* const winners =
          static_cast<const uint8_t*>(args.saved) + n * out_.CountFrom(1);
      std::fill_n(dx, in_.CountFrom(1), 0.0f);
      ForEachOutput([&](int64_t at, int64_t first, const Window& window) {
        if (!layer_.is_max()) {
          ForEachPixel(window, [&](int64_t in, int) { dx[first + in] += dy[at] * Share(); });
        } else if (winners[at] != kClosed) {
          dx[first + OffsetOf(winners[at])] += dy[at];
        }
      });
    });
  }

 private:
  // Pixels of a window inside the image, counted from its upper left corner.
  struct Window {
    int64_t top, bottom, left, right;
  };

  Window Clip(int64_t row, int64_t column) const {
    return {std::max<int64_t>(0, -row), std::min(layer_.kernel_height(), in_[2] - row),
            std::max<int64_t>(0, -column), std::min(layer_.kernel_width(), in_[3] - column)};
  }

  // output(index in y, index in x of the window's corner, window), in memory order of y.
  template <class Output>
  void ForEachOutput(const Output& output) const {
    for (int64_t r = 0; r < out_[2]; ++r) {
      for (int64_t c = 0; c < out_[3]; ++c) {
        const int64_t row = r * layer_.stride() - layer_.pad();
        const int64_t column = c * layer_.stride() - layer_.pad();
        const Window window = Clip(row, column);
        const int64_t first = row * in_strides_.row + column * in_strides_.column;
        const int64_t at = r * out_strides_.row + c * out_strides_.column;
        for (int64_t channel = 0; channel < in_[1]; ++channel) {
          output(at + channel * out_strides_.channel, first + channel * in_strides_.channel,
                 window);
        }
      }
    }
  }

  // pixel(offset from the corner in x, place in the window)
  template <class Pixel>
  void ForEachPixel(const Window& window, const Pixel& pixel) const {
    for (int64_t r = window.top; r < window.bottom; ++r) {
      for (int64_t c = window.left; c < window.right; ++c) {
        pixel(r * in_strides_.row + c * in_strides_.column,
              static_cast<int>(r * layer_.kernel_width() + c));
      }
    }
  }

  int64_t OffsetOf(int place) const {
    return place / layer_.kernel_width() * in_strides_.row +
           place % layer_.kernel_width() * in_strides_.column;
  }

  // Answers the place of the winner: of equal pixels the first wins; a NaN is never lost.
  uint8_t TakeLargest(const float* corner, const Window& window, float* y) const {
    int best = static_cast<int>(window.top * layer_.kernel_width() + window.left);
    float largest = corner[OffsetOf(best)];
    ForEachPixel(window, [&](int64_t in, int place) {
      if (!(corner[in] > largest) && corner[in] == corner[in]) return;
      largest = corner[in];
      best = place;
    });
    const bool closed = relu_ && largest <= 0;
    *y = closed ? 0 : largest;
    return closed ? kClosed : static_cast<uint8_t>(best);
  }

  float Sum(const float* corner, const Window& window) const {
    float sum = 0;
    ForEachPixel(window, [&](int64_t in, int) { sum += corner[in]; });
    return sum;
  }

  float Share() const {
    return 1.0f / static_cast<float>(layer_.kernel_height() * layer_.kernel_width());
  }

  const Device device_;
  const Pooling& layer_;
  const bool relu_;
  const bool training_;
  const Shape in_, out_;
  const Strides in_strides_, out_strides_;
};

std::optional<KernelOffer> OfferPoolingDirect(const KernelRequest& request) {
  if (request.fused_relu && !request.layer->commutes_with_relu()) return std::nullopt;
  KernelOffer offer;
  const Format format =
      request.available[0] == Format::kChannelsLast ? Format::kChannelsLast : Format::kPlain;
  offer.inputs = {format};
  offer.outputs = {format};
  return offer;
}

std::unique_ptr<Kernel> MakePoolingDirect(const KernelRequest& request, const KernelOffer& offer) {
  return std::make_unique<PoolingDirect>(request, offer);
}

DTRAIN_KERNEL("pooling", DeviceKind::kCpu, "direct", OfferPoolingDirect, MakePoolingDirect);

}  // namespace
}  // namespace dtrain
