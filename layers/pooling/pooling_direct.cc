// Implements pooling on the CPU under the name "direct", computed from the definition for plain and channels_last
// images.
#include <algorithm>

#include "framework/device/cpu/parallel.h"
#include "framework/nn/kernel.h"
#include "layers/pooling/pooling.h"

namespace dtrain {
namespace {

// Holds the distances between neighbours along the channels, rows and columns of an image, in elements.
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
        is_max_(static_cast<const Pooling&>(*request.layer).is_max()),
        windows_(static_cast<const Pooling&>(*request.layer).windows()),
        relu_(request.fused_relu),
        training_(request.mode == Mode::kTrain),
        in_(request.inputs[0]),
        out_(request.outputs[0]),
        in_strides_(StridesOf(in_, offer.inputs[0].format)),
        out_strides_(StridesOf(out_, offer.outputs[0].format)) {}

  KernelNeeds Needs() const override {
    KernelNeeds needs;
    if (is_max_ && training_) {
      needs.saved_bytes = static_cast<size_t>(out_.count()) * windows_.PlaceBytes();
    }
    return needs;
  }

  void Forward(const KernelArgs& args) override {
    if (!is_max_) return ForwardMean(args);
    windows_.PlacesFitBytes() ? ForwardLargest<uint8_t>(args) : ForwardLargest<int32_t>(args);
  }

  void Backward(const KernelArgs& args) override {
    if (args.input_gradients[0].data == nullptr) return;
    if (!is_max_) return BackwardMean(args);
    windows_.PlacesFitBytes() ? BackwardLargest<uint8_t>(args) : BackwardLargest<int32_t>(args);
  }

 private:
  // Describes the pixels of a window that are inside the image, relative to the window's upper left corner.
  struct Window {
    int64_t top, bottom, left, right;
    float share;
  };

  void ForwardMean(const KernelArgs& args) {
    ForEachSample([&](int64_t n) {
      const float* const x = args.inputs[0].f32() + n * in_.CountFrom(1);
      float* const y = args.outputs[0].f32() + n * out_.CountFrom(1);
      ForEachOutput([&](int64_t at, int64_t first, const Window& window) {
        y[at] = Sum(x + first, window) * window.share;
      });
    });
  }

  void BackwardMean(const KernelArgs& args) {
    ForEachSample([&](int64_t n) {
      const float* const dy = args.output_gradients[0].f32() + n * out_.CountFrom(1);
      float* const dx = args.input_gradients[0].f32() + n * in_.CountFrom(1);
      std::fill_n(dx, in_.CountFrom(1), 0.0f);
      ForEachOutput([&](int64_t at, int64_t first, const Window& window) {
        ForEachPixel(window, [&](int64_t in, int) { dx[first + in] += dy[at] * window.share; });
      });
    });
  }

  // Saves the index of the largest pixel in each window for the backward pass.
  template <class Winner>
  void ForwardLargest(const KernelArgs& args) {
    ForEachSample([&](int64_t n) {
      const float* const x = args.inputs[0].f32() + n * in_.CountFrom(1);
      float* const y = args.outputs[0].f32() + n * out_.CountFrom(1);
      Winner* const winners = static_cast<Winner*>(args.saved) + n * out_.CountFrom(1);
      ForEachOutput([&](int64_t at, int64_t first, const Window& window) {
        const Winner winner = TakeLargest<Winner>(x + first, window, &y[at]);
        if (training_) winners[at] = winner;
      });
    });
  }

  template <class Winner>
  void BackwardLargest(const KernelArgs& args) {
    ForEachSample([&](int64_t n) {
      const float* const dy = args.output_gradients[0].f32() + n * out_.CountFrom(1);
      float* const dx = args.input_gradients[0].f32() + n * in_.CountFrom(1);
      const Winner* const winners = static_cast<const Winner*>(args.saved) + n * out_.CountFrom(1);
      std::fill_n(dx, in_.CountFrom(1), 0.0f);
      ForEachOutput([&](int64_t at, int64_t first, const Window&) {
        if (winners[at] != kNoPixel<Winner>) dx[first + OffsetOf(winners[at])] += dy[at];
      });
    });
  }

  template <class Body>
  void ForEachSample(const Body& body) const {
    ParallelFor(device_.threads, in_[0], body);
  }

  // Calls output(index in y, index in x of the window's corner, window) for each output of a sample.
  template <class Output>
  void ForEachOutput(const Output& output) const {
    const PoolingAxis &rows = windows_.rows, &columns = windows_.columns;
    for (int64_t r = 0; r < out_[2]; ++r) {
      for (int64_t c = 0; c < out_[3]; ++c) {
        const int64_t row = rows.StartOf(r), column = columns.StartOf(c);
        const PoolingSpan height = rows.PixelsOf(r), width = columns.PixelsOf(c);
        const Window window = {height.begin - row, height.end - row, width.begin - column,
                               width.end - column, windows_.ShareOf(r, c)};
        const int64_t first = row * in_strides_.row + column * in_strides_.column;
        const int64_t at = r * out_strides_.row + c * out_strides_.column;
        for (int64_t channel = 0; channel < in_[1]; ++channel) {
          output(at + channel * out_strides_.channel, first + channel * in_strides_.channel,
                 window);
        }
      }
    }
  }

  // Calls pixel(offset in x from the window's corner, index in the window) for each pixel of a window.
  template <class Pixel>
  void ForEachPixel(const Window& window, const Pixel& pixel) const {
    for (int64_t r = window.top; r < window.bottom; ++r) {
      for (int64_t c = window.left; c < window.right; ++c) {
        pixel(r * in_strides_.row + c * in_strides_.column,
              static_cast<int>(r * windows_.columns.kernel + c));
      }
    }
  }

  int64_t OffsetOf(int place) const {
    return place / windows_.columns.kernel * in_strides_.row +
           place % windows_.columns.kernel * in_strides_.column;
  }

  // Writes the largest pixel to *y and returns its index in the window.  Of equal pixels the first wins; a NaN
  // propagates.
  template <class Winner>
  Winner TakeLargest(const float* corner, const Window& window, float* y) const {
    int best = static_cast<int>(window.top * windows_.columns.kernel + window.left);
    float largest = corner[OffsetOf(best)];
    ForEachPixel(window, [&](int64_t in, int place) {
      if (!(corner[in] > largest) && corner[in] == corner[in]) return;
      largest = corner[in];
      best = place;
    });
    const bool closed = relu_ && largest <= 0;
    *y = closed ? 0 : largest;
    return closed ? kNoPixel<Winner> : static_cast<Winner>(best);
  }

  float Sum(const float* corner, const Window& window) const {
    float sum = 0;
    ForEachPixel(window, [&](int64_t in, int) { sum += corner[in]; });
    return sum;
  }

  const Device device_;
  const bool is_max_;
  const PoolingWindows windows_;
  const bool relu_;
  const bool training_;
  const Shape in_, out_;
  const Strides in_strides_, out_strides_;
};

std::optional<KernelOffer> OfferPoolingDirect(const KernelRequest& request) {
  if (request.fused_relu && request.layer->max_windows() == nullptr) return std::nullopt;
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
