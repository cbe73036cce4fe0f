// Implements the Winograd convolution's transforms of weights from plain OIHW order, and of their gradient back to it.
#include "layers/convolution/winograd_loops.h"
#include "layers/convolution/winograd_transform.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int kTaps = 9;

// Loads the windows of kLanes pairs of channels, one per lane; lanes are `stride` floats apart in memory.
DTRAIN_INLINE void LoadWindows(const float* w, int64_t stride, bool turned, Vec (&taps)[kTaps]) {
#pragma GCC unroll 9
  for (int tap = 0; tap < kTaps; ++tap) {
    const float* const from = w + (turned ? kTaps - 1 - tap : tap);
    Vec window = Zero();
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) window[lane] = from[lane * stride];
    taps[tap] = window;
  }
}

template <class T>
void IntoPanels(const WinogradWeightBlock& block, bool turned, const float* w, float* panels) {
  const int64_t to_output = block.channels * kTaps, to_channel = kTaps;
  const int64_t rows = turned ? block.outputs : block.block_channels;
  const int64_t columns = turned ? block.block_channels : block.outputs;
  const int64_t to_row = turned ? to_output : to_channel;
  const int64_t to_column = turned ? to_channel : to_output;
  const int64_t panel = PanelFloats(kWinogradBlock);
  w += block.first_output * to_output + block.first_channel * to_channel;
  for (int64_t column = 0; column < columns; column += kLanes) {
    for (int64_t row = 0; row < rows; ++row) {
      Vec taps[kTaps], out[T::kOut * T::kOut];
      LoadWindows(w + row * to_row + column * to_column, to_column, turned, taps);
      Both<T>(taps, out);
      float* const to = panels + row * kWinogradBlock + column;
#pragma GCC unroll 36
      for (int p = 0; p < T::kOut * T::kOut; ++p) Store(to + p * panel, out[p]);
    }
  }
}

template <class T>
void OutOfPanels(const WinogradWeightBlock& block, int64_t panel_rows, const float* panels,
                 bool accumulate, float* dw) {
  const int64_t to_output = block.channels * kTaps;
  const int64_t panel = PanelFloats(panel_rows);
  dw += block.first_output * to_output + block.first_channel * kTaps;
  for (int64_t o = 0; o < block.outputs; o += kLanes) {
    for (int64_t c = 0; c < block.block_channels; ++c) {
      const float* const from = panels + c * kWinogradBlock + o;
      Vec in[T::kIn * T::kIn], taps[kTaps];
#pragma GCC unroll 36
      for (int p = 0; p < T::kIn * T::kIn; ++p) in[p] = Load(from + p * panel);
      Both<T>(in, taps);
      float* const to = dw + o * to_output + c * kTaps;
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int tap = 0; tap < kTaps; ++tap) {
          float& element = to[lane * to_output + tap];
          element = accumulate ? element + taps[tap][lane] : taps[tap][lane];
        }
      }
    }
  }
}

}  // namespace

void WinogradWeights(WinogradKind kind, const WinogradWeightBlock& block, bool turned,
                     const float* w, float* panels) {
  ForKind(kind, [&]<WinogradKind k>() {
    IntoPanels<typename Winograd<k>::Weights>(block, turned, w, panels);
  });
}

void WinogradWeightGradient(WinogradKind kind, const WinogradWeightBlock& block, int64_t panel_rows,
                            const float* panels, bool accumulate, float* dw) {
  ForKind(kind, [&]<WinogradKind k>() {
    if constexpr (k != WinogradKind::kDoubling) {
      OutOfPanels<typename Winograd<k>::WeightGradient>(block, panel_rows, panels, accumulate, dw);
    }
  });
}

}  // namespace dtrain::DTRAIN_ISA_NS
