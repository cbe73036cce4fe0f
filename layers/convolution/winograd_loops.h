// The loops of the winograd convolution: stride 1, a window of three, images channels last, weights
// in plain OIHW order (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015).
//
// F(m, 3) cuts the output into tiles of m x m and computes each from p = (m + 2)^2 products a pair
// of channels instead of 9 m^2:
//   y = A^T [ sum_c (G w G^T) * (B^T x B) ] A          (* elementwise; three pairs of 1-d
//   transforms)
// so a convolution is transforms and p independent matrix products.  m is 4 (p = 36), or 2 (p = 16)
// for maps of two pixels.  The gradient of the weights is G^T [ sum_tiles (B^T x B) * (A dy A^T) ]
// G; the gradient of the input is a forward pass over dy with the window turned round.
//
// Transformed tiles lie in panels, one a point and block of channels: [block][point][row][64],
// where a row is a tile (or a channel, for weights) and 64 the channels of a block; PanelFloats
// apart, which keeps the points of a tile out of each other's cache sets.  Channels are a multiple
// of 16; the columns of the last block beyond them are never touched.
//
// Every element of a product is one fixed chain of multiply-adds in the order of its terms, however
// rows, terms and threads are cut.
#pragma once

#include <cstdint>

#include "framework/core/isa_dispatch.h"

namespace dtrain {

inline constexpr int64_t kWinogradBlock = 64;  // channels

// Floats from one panel of `rows` rows to the next.
constexpr int64_t PanelFloats(int64_t rows) { return rows * kWinogradBlock + 16; }

// How an image is cut into tiles.  Tiles count along the rows of an image, then images.
struct WinogradTiling {
  int64_t tile = 4;  // m, 4 or 2
  int64_t pad = 0;   // zeros around the input
  int64_t in_height = 0, in_width = 0;
  int64_t out_height = 0, out_width = 0;
  int64_t rows = 0, columns = 0;  // tiles of an image

  int64_t points() const { return (tile + 2) * (tile + 2); }
};

// Tiles [first, first + count), which become the rows from `row` on of panels of `panel_rows`.
struct WinogradPiece {
  int64_t first = 0;
  int64_t count = 0;
  int64_t row = 0;
  int64_t panel_rows = 0;
};

// panels = B^T x B; x [N, H, W, channels]; zeros: as many as channels.
DTRAIN_ISA_DECLARE(void, WinogradInput,
                   (const WinogradTiling& tiling, const WinogradPiece& piece, int64_t channels,
                    const float* x, const float* zeros, float* panels))

// panels = A dy A^T; dy [N, out_height, out_width, channels].
DTRAIN_ISA_DECLARE(void, WinogradOutputGradient,
                   (const WinogradTiling& tiling, const WinogradPiece& piece, int64_t channels,
                    const float* dy, const float* zeros, float* panels))

// y = A^T panels A + bias, then max(0, .) if `relu`, for the `width` channels from `first_channel`
// on; panels: one block.  bias may be null.
DTRAIN_ISA_DECLARE(void, WinogradOutput,
                   (const WinogradTiling& tiling, const WinogradPiece& piece, int64_t channels,
                    int64_t first_channel, int64_t width, const float* panels, const float* bias,
                    bool relu, float* y))

// A block of the weights w [outputs, channels, 3, 3].
struct WinogradWeightBlock {
  int64_t channels = 0;  // of w
  int64_t first_output = 0, outputs = 0;
  int64_t first_channel = 0, block_channels = 0;
};

// panels = G w G^T with a row for each channel and a column for each output; `turned`: a row for
// each output, a column for each channel, and the window turned round.  Panels of kWinogradBlock
// rows.
DTRAIN_ISA_DECLARE(void, WinogradWeights,
                   (int64_t tile, const WinogradWeightBlock& block, bool turned, const float* w,
                    float* panels))

// dw (+)= G^T panels G; panels of `panel_rows` rows: a row for each channel, a column for each
// output.
DTRAIN_ISA_DECLARE(void, WinogradWeightGradient,
                   (int64_t tile, const WinogradWeightBlock& block, int64_t panel_rows,
                    const float* panels, bool accumulate, float* dw))

// c[m, n] = (or +=) sum_k a(m, k) b[k, n], where a(m, k) = a[m * a_row + k * a_term]; rows of b and
// c are kWinogradBlock apart and n is a multiple of 16.
struct WinogradFactors {
  int64_t rows = 0, columns = 0, terms = 0;
  int64_t a_row = 0, a_term = 0;
};
DTRAIN_ISA_DECLARE(void, WinogradProduct,
                   (const WinogradFactors& size, const float* a, const float* b, bool add,
                    float* c))

}  // namespace dtrain
