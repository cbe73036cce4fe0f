// Computes the gradient by the input by scattering: the accumulators are a row segment of dx, P + K - 1 pixels of T
// channels, and every pixel of dy is added to K of them.  So the border costs nothing, whereas gathering with full
// padding would compute (P + K - 1) / P times as much.
#include "framework/device/cpu/simd.h"
#include "layers/convolution/blocked_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

struct Segment {
  const float* dy;  // pixel (first row, first column) of output 0
  const float* w;   // weights [output 0, first channel, first kernel row]
  float* dx;        // pixel (row, first column) of the first channel
  int64_t channel_stride;
  int64_t rows;  // rows of dy that reach this row of dx
  bool first;    // if false, dx holds the previous segment's last K - 1 pixels
};

// Row i of dy reaches the row of dx through kernel row (last - i): w points to `last`.
template <int K, int P, int T>
void ScatterSegment(const BlockedConvolution& conv, const Segment& segment) {
  constexpr int kGroup = 2;  // pixels of dy held at a time
  Vec sum[T][P + K - 1];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int p = 0; p < P + K - 1; ++p) {
      const bool carried = !segment.first && p < K - 1;
      sum[t][p] = carried ? Load(segment.dx + t * segment.channel_stride + p * 16) : Zero();
    }
  }
  for (int64_t o = 0; o < conv.outputs; ++o) {
    const float* dy = segment.dy + o * conv.out_height * conv.out_width * 16;
    const float* w = segment.w + o * conv.channels * K * K;
    for (int64_t i = 0; i < segment.rows; ++i, dy += conv.out_width * 16, w -= K) {
#pragma GCC unroll 8
      for (int p = 0; p < P; p += kGroup) {
        Vec pixel[kGroup];
#pragma GCC unroll 4
        for (int g = 0; g < kGroup; ++g) {
          if (p + g < P) pixel[g] = Load(dy + (p + g) * 16);
        }
#pragma GCC unroll 8
        for (int kx = 0; kx < K; ++kx) {
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) {
            const Vec weight = Set1(w[t * K * K + kx]);
#pragma GCC unroll 4
            for (int g = 0; g < kGroup; ++g) {
              if (p + g < P) sum[t][p + g + kx] = Fma(pixel[g], weight, sum[t][p + g + kx]);
            }
          }
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int p = 0; p < P + K - 1; ++p)
      Store(segment.dx + t * segment.channel_stride + p * 16, sum[t][p]);
  }
}

using SegmentFunction = void (*)(const BlockedConvolution&, const Segment&);

// Returns the length of the longest segment whose accumulators for one channel fit in registers.
template <int K>
constexpr int MaxPixels() {
  const int most = kLanes == 16 ? 10 : 8;
  return most < kAccumulators - K + 1 ? most : kAccumulators - K + 1;
}

template <int K>
constexpr int MaxChannels(int pixels) {
  const int most = kAccumulators / (pixels + K - 1);
  return most < 4 ? most : 4;
}

template <int K, int P, int T>
SegmentFunction PickChannels(int channels) {
  if constexpr (T > 1) {
    if (channels < T) return PickChannels<K, P, T - 1>(channels);
  }
  return &ScatterSegment<K, P, T>;
}

template <int K, int P>
SegmentFunction Pick(int pixels, int channels) {
  if constexpr (P > 1) {
    if (pixels < P) return Pick<K, P - 1>(pixels, channels);
  }
  return PickChannels<K, P, MaxChannels<K>(P)>(channels);
}

DTRAIN_INLINE int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
DTRAIN_INLINE int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

template <int K>
void DataRow(const BlockedConvolution& conv, const float* dy, const float* w, int64_t row,
             float* dx, int64_t channel_stride) {
  const int64_t first_row = Max(0, row - K + 1);
  const int64_t rows = Min(row, conv.out_height - 1) - first_row + 1;
  const int64_t segments = (conv.out_width + MaxPixels<K>() - 1) / MaxPixels<K>();
  const int64_t longest = (conv.out_width + segments - 1) / segments;
  const int64_t tile = MaxChannels<K>(static_cast<int>(longest));
  for (int64_t c = 0; c < conv.channels; c += tile) {
    const int64_t channels = Min(tile, conv.channels - c);
    for (int64_t column = 0; column < conv.out_width; column += longest) {
      const int64_t pixels = Min(longest, conv.out_width - column);
      const SegmentFunction scatter =
          Pick<K, MaxPixels<K>()>(static_cast<int>(pixels), static_cast<int>(channels));
      for (int lane = 0; lane < 16; lane += kLanes) {
        scatter(conv, {.dy = dy + (first_row * conv.out_width + column) * 16 + lane,
                       .w = w + c * K * K + (row - first_row) * K,
                       .dx = dx + c * channel_stride + column * 16 + lane,
                       .channel_stride = channel_stride,
                       .rows = rows,
                       .first = column == 0});
      }
    }
  }
}

}  // namespace

void BackwardDataRow(const BlockedConvolution& conv, const float* dy, const float* w, int64_t row,
                     float* dx, int64_t channel_stride) {
  if (conv.kernel == 5) {
    DataRow<5>(conv, dy, w, row, dx, channel_stride);
  } else {
    DataRow<3>(conv, dy, w, row, dx, channel_stride);
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
