// The loops of the Winograd convolution (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015),
// for a 3 x 3 window and stride 1 or 2.  Images are channels last, weights in plain OIHW order.
//
// The output is cut into square tiles.  A tile takes p products (points) for each pair of channels, where a direct sum
// takes 9 for each pixel:
//   y = A^T [ sum_c (G w G^T) * (B^T x B) ] A
// where * is elementwise, and each of G, B and A transforms rows and columns.  So a convolution consists of transforms
// and p independent matrix products.  The gradient of the weights is G^T [ sum_tiles (B^T x B) * (A dy A^T) ] G; the
// gradient of the input is a convolution of dy.
//
//   kFour      F(4, 3): tiles of 4 x 4, p = 36, a quarter of the products of a direct sum
//   kTwo       F(2, 3): tiles of 2 x 2, p = 16, for maps of 2 x 2 pixels
//   kHalving   stride 2: y_i = (w0 x_2i + w2 x_2i+2) + w1 x_2i+1, F(4, 2) on the even pixels beside
//              the plain products of the odd ones; tiles of 4 x 4, p = 9 x 9
//   kDoubling  the gradient by the input of kHalving: F(4, 2) gives every other pixel of a tile of 8 x 8
//
// In kHalving and kDoubling the four points of plain products in each direction share one weight, so the weights have 6
// x 6 points.
//
// Transformed tiles are stored in panels, one for each point and block of channels: [block][point][row][64], where a
// row is a tile (for weights, a channel) and 64 is the channels of a block.  Panels are PanelFloats apart, so that the
// points of a tile map to different cache sets.  The number of channels is a multiple of 16; columns of the last block
// beyond it are never read or written.
//
// Every element of a product is one fixed chain of multiply-adds in the order of its terms, however rows, terms and
// threads are divided.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

inline constexpr int64_t kWinogradBlock = 64;  // channels

// Returns the distance from one panel of `rows` rows to the next, in floats.
constexpr int64_t PanelFloats(int64_t rows) { return rows * kWinogradBlock + 16; }

enum class WinogradKind { kFour, kTwo, kHalving, kDoubling };

// Describes the division of images into tiles.  Tiles are numbered along the rows of an image, then by image.
struct WinogradTiling {
  WinogradKind kind = WinogradKind::kFour;
  int64_t pad = 0;  // zeros around the input
  int64_t in_height = 0, in_width = 0;
  int64_t out_height = 0, out_width = 0;
  int64_t rows = 0, columns = 0;  // tiles per image

  bool strided() const { return kind >= WinogradKind::kHalving; }
  // Return the distance from one tile to the next, in pixels of the output and of the input.
  int64_t out_step() const {
    return kind == WinogradKind::kTwo ? 2 : kind == WinogradKind::kDoubling ? 8 : 4;
  }
  int64_t in_step() const {
    return kind == WinogradKind::kTwo ? 2 : kind == WinogradKind::kHalving ? 8 : 4;
  }
  int64_t points() const { return kind == WinogradKind::kTwo ? 16 : strided() ? 81 : 36; }
  int64_t weight_points() const { return kind == WinogradKind::kTwo ? 16 : 36; }
  // Returns the point of the weights that belongs to a point of the images.
  int64_t WeightPoint(int64_t point) const {
    if (!strided()) return point;
    const int64_t row = point / 9, column = point % 9;
    return (row < 5 ? row : 5) * 6 + (column < 5 ? column : 5);
  }
};

// Describes the tiles [first, first + count), which are rows [row, row + count) of panels with panel_rows rows.
struct WinogradPart {
  int64_t first = 0;
  int64_t count = 0;
  int64_t row = 0;
  int64_t panel_rows = 0;
};

// panels = B^T x B, for x [N, H, W, channels]; `zeros` must be `channels` zeros, which stand for pixels of the padding.
DTRAIN_ISA_DECLARE(void, WinogradInput,
                   (const WinogradTiling& tiling, const WinogradPart& part, int64_t channels,
                    const float* x, const float* zeros, float* panels))

// panels = A dy A^T; dy [N, out_height, out_width, channels].  Not for kDoubling.
DTRAIN_ISA_DECLARE(void, WinogradOutputGradient,
                   (const WinogradTiling& tiling, const WinogradPart& part, int64_t channels,
                    const float* dy, const float* zeros, float* panels))

// y = A^T panels A + bias, then max(0, .) if `relu`, for the `width` channels from `first_channel` on.  `panels` are
// those of one block of channels. bias may be null.
DTRAIN_ISA_DECLARE(void, WinogradOutput,
                   (const WinogradTiling& tiling, const WinogradPart& part, int64_t channels,
                    int64_t first_channel, int64_t width, const float* panels, const float* bias,
                    bool relu, float* y))

// Describes a block of the weights w [outputs, channels, 3, 3].
struct WinogradWeightBlock {
  int64_t channels = 0;  // channels of w
  int64_t first_output = 0, outputs = 0;
  int64_t first_channel = 0, block_channels = 0;
};

// panels = G w G^T, with a row for each channel and a column for each output.  If `turned`, it has a row for each
// output and a column for each channel, and the window is rotated by 180 degrees.  Panels have kWinogradBlock rows.
DTRAIN_ISA_DECLARE(void, WinogradWeights,
                   (WinogradKind kind, const WinogradWeightBlock& block, bool turned,
                    const float* w, float* panels))

// dw = (or += if `accumulate`) G^T panels G. Panels have `panel_rows` rows, one for each channel, and a column for each
// output.  Not for kDoubling.
DTRAIN_ISA_DECLARE(void, WinogradWeightGradient,
                   (WinogradKind kind, const WinogradWeightBlock& block, int64_t panel_rows,
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
