// Implements the Winograd convolution's transforms of images into panels and back.
#include "layers/convolution/winograd_loops.h"
#include "layers/convolution/winograd_transform.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// Holds the position of the upper left corner of a tile's window.
struct Corner {
  int64_t image, row, column;
};

Corner CornerOf(const WinogradTiling& tiling, int64_t tile, int64_t step, int64_t pad) {
  const int64_t of_image = tile % (tiling.rows * tiling.columns);
  return {tile / (tiling.rows * tiling.columns), of_image / tiling.columns * step - pad,
          of_image % tiling.columns * step - pad};
}

// Refers to an image tensor [N, height, width, channels].
struct Images {
  const float* data;
  int64_t height, width, channels;
};

// Transforms square windows of the images by T and stores them in panels.
template <class T>
void IntoPanels(const WinogradTiling& tiling, const WinogradPart& part, const Images& images,
                int64_t step, int64_t pad, const float* zeros, float* panels) {
  constexpr int kSide = T::kIn, kPoints = T::kOut * T::kOut;
  const int64_t panel = PanelFloats(part.panel_rows);
  for (int64_t t = 0; t < part.count; ++t) {
    const Corner corner = CornerOf(tiling, part.first + t, step, pad);
    const float* pixels[kSide * kSide];
    for (int i = 0; i < kSide; ++i) {
      const int64_t row = corner.row + i;
      for (int j = 0; j < kSide; ++j) {
        const int64_t column = corner.column + j;
        const bool inside = row >= 0 && row < images.height && column >= 0 && column < images.width;
        pixels[i * kSide + j] =
            inside ? images.data + ((corner.image * images.height + row) * images.width + column) *
                                       images.channels
                   : zeros;
      }
    }
    for (int64_t c = 0; c < images.channels; c += kLanes) {
      Vec in[kSide * kSide], out[kPoints];
#pragma GCC unroll 81
      for (int i = 0; i < kSide * kSide; ++i) in[i] = Load(pixels[i] + c);
      Both<T>(in, out);
      float* const to = panels + c / kWinogradBlock * kPoints * panel +
                        (part.row + t) * kWinogradBlock + c % kWinogradBlock;
#pragma GCC unroll 81
      for (int p = 0; p < kPoints; ++p) Store(to + p * panel, out[p]);
    }
  }
}

// Describes `width` of the `channels` channels of y. y, bias and the panels begin with the first of
// them.
struct OutputPart {
  float* y;
  const float* bias;
  bool relu;
  int64_t channels, width;
};

template <class T>
void OutOfPanels(const WinogradTiling& tiling, const WinogradPart& part, const OutputPart& output,
                 const float* panels) {
  constexpr int kSide = T::kOut, kPoints = T::kIn * T::kIn;
  const int64_t panel = PanelFloats(part.panel_rows);
  for (int64_t t = 0; t < part.count; ++t) {
    const Corner corner = CornerOf(tiling, part.first + t, tiling.out_step(), 0);
    const int64_t pixel =
        (corner.image * tiling.out_height + corner.row) * tiling.out_width + corner.column;
    for (int64_t c = 0; c < output.width; c += kLanes) {
      const float* const from = panels + (part.row + t) * kWinogradBlock + c;
      Vec in[kPoints], out[kSide * kSide];
#pragma GCC unroll 81
      for (int p = 0; p < kPoints; ++p) in[p] = Load(from + p * panel);
      Both<T>(in, out);
      const Vec bias = output.bias == nullptr ? Zero() : Load(output.bias + c);
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) {
        if (corner.row + i >= tiling.out_height) break;
#pragma GCC unroll 8
        for (int j = 0; j < kSide; ++j) {
          if (corner.column + j >= tiling.out_width) break;
          const Vec y = out[i * kSide + j] + bias;
          Store(output.y + (pixel + i * tiling.out_width + j) * output.channels + c,
                output.relu ? Relu(y) : y);
        }
      }
    }
  }
}

}  // namespace

void WinogradInput(const WinogradTiling& tiling, const WinogradPart& part, int64_t channels,
                   const float* x, const float* zeros, float* panels) {
  const Images images = {x, tiling.in_height, tiling.in_width, channels};
  ForKind(tiling.kind, [&]<WinogradKind kind>() {
    IntoPanels<typename Winograd<kind>::Input>(tiling, part, images, tiling.in_step(), tiling.pad,
                                               zeros, panels);
  });
}

void WinogradOutputGradient(const WinogradTiling& tiling, const WinogradPart& part,
                            int64_t channels, const float* dy, const float* zeros, float* panels) {
  const Images images = {dy, tiling.out_height, tiling.out_width, channels};
  ForKind(tiling.kind, [&]<WinogradKind kind>() {
    if constexpr (kind != WinogradKind::kDoubling) {
      IntoPanels<typename Winograd<kind>::OutputGradient>(tiling, part, images, tiling.out_step(),
                                                          0, zeros, panels);
    }
  });
}

void WinogradOutput(const WinogradTiling& tiling, const WinogradPart& part, int64_t channels,
                    int64_t first_channel, int64_t width, const float* panels, const float* bias,
                    bool relu, float* y) {
  const OutputPart output = {y + first_channel, bias == nullptr ? nullptr : bias + first_channel,
                             relu, channels, width};
  ForKind(tiling.kind, [&]<WinogradKind kind>() {
    OutOfPanels<typename Winograd<kind>::Output>(tiling, part, output, panels);
  });
}

}  // namespace dtrain::DTRAIN_ISA_NS
