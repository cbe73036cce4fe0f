// Computes the forward pass: a tile of T outputs x P pixels of a row stays in registers while the loop runs over
// channels and kernel.  Each pixel is loaded once per T multiply-adds, each weight once per P.
#include "framework/device/cpu/simd.h"
#include "layers/convolution/blocked_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

inline constexpr int kMaxPixels = 8;
inline constexpr int kMaxOutputs = 6;
// This is the number of accumulators, which leaves registers for T weights and a few pixels.
inline constexpr int kTileRegisters = kRegisters == 32 ? 21 : 12;

struct Tile {
  const float* x;     // pixel (row, first column) of channel 0
  const float* w;     // weights of the first output
  const float* bias;  // bias of the first output; may be null
  float* y;           // pixel (row, first column) of the first output
  bool relu;
};

template <int K, int P, int T>
void ForwardTile(const BlockedConvolution& conv, const Tile& tile) {
  Vec sum[T][P];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    const Vec start = tile.bias == nullptr ? Zero() : Set1(tile.bias[t]);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) sum[t][p] = start;
  }
  const int64_t filter = conv.channels * K * K;
  const float* w = tile.w;
  for (int64_t c = 0; c < conv.channels; ++c) {
    const float* x = tile.x + c * conv.height * conv.width * 16;
    for (int ky = 0; ky < K; ++ky, x += conv.width * 16, w += K) {
#pragma GCC unroll 8
      for (int kx = 0; kx < K; ++kx) {
        Vec weight[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) weight[t] = Set1(w[t * filter + kx]);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          const Vec pixel = Load(x + (p + kx) * 16);
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) sum[t][p] = Fma(pixel, weight[t], sum[t][p]);
          if (kRegisters == 16) ReloadBarrier();
        }
      }
    }
  }
  if (tile.relu) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) sum[t][p] = Relu(sum[t][p]);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    float* y = tile.y + t * conv.out_height * conv.out_width * 16;
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) Store(y + p * 16, sum[t][p]);
  }
}

using TileFunction = void (*)(const BlockedConvolution&, const Tile&);

// Returns the largest number of outputs of a tile of p pixels.
constexpr int MaxOutputs(int p) {
  return kTileRegisters / p < kMaxOutputs ? kTileRegisters / p : kMaxOutputs;
}

template <int K, int P, int T>
TileFunction PickOutputs(int outputs) {
  if constexpr (T > 1) {
    if (outputs < T) return PickOutputs<K, P, T - 1>(outputs);
  }
  return &ForwardTile<K, P, T>;
}

template <int K, int P>
TileFunction Pick(int pixels, int outputs) {
  if constexpr (P > 1) {
    if (pixels < P) return Pick<K, P - 1>(pixels, outputs);
  }
  return PickOutputs<K, P, MaxOutputs(P)>(outputs);
}

TileFunction Pick(int64_t kernel, int pixels, int outputs) {
  return kernel == 5 ? Pick<5, kMaxPixels>(pixels, outputs) : Pick<3, kMaxPixels>(pixels, outputs);
}

// TilesOf and TileSize divide `count` into as few tiles of equal size as possible.  The last tile is moved back to end
// with the row or the outputs, and computes some elements twice.
int64_t TilesOf(int64_t count, int64_t most) { return (count + most - 1) / most; }
int64_t TileSize(int64_t count, int64_t most) {
  const int64_t tiles = TilesOf(count, most);
  return (count + tiles - 1) / tiles;
}

DTRAIN_INLINE int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace

// Chooses the tile with the lowest cost, where a load costs half as much as a multiply-add.
TileShape ChooseTile(const BlockedConvolution& conv) {
  TileShape best = {1, 1};
  int64_t best_cost = INT64_MAX;
  for (int most = 1; most <= kMaxPixels; ++most) {
    const int64_t p = TileSize(conv.out_width, most);
    const int64_t t = TileSize(conv.outputs, MaxOutputs(static_cast<int>(p)));
    const int64_t cost =
        TilesOf(conv.out_width, p) * TilesOf(conv.outputs, t) * (2 * p * t + p + t);
    if (cost < best_cost) best = {p, t};
    if (cost < best_cost) best_cost = cost;
  }
  return best;
}

void ForwardRow(const BlockedConvolution& conv, const TileShape& shape, const float* x,
                const float* w, const float* bias, bool relu, int64_t row, float* y) {
  const auto [pixels, outputs] = shape;
  const TileFunction compute =
      Pick(conv.kernel, static_cast<int>(pixels), static_cast<int>(outputs));
  const int64_t filter = conv.channels * conv.kernel * conv.kernel;
  for (int64_t column = 0; column < conv.out_width; column += pixels) {
    const int64_t first = Min(column, conv.out_width - pixels);
    for (int64_t output = 0; output < conv.outputs; output += outputs) {
      const int64_t o = Min(output, conv.outputs - outputs);
      for (int lane = 0; lane < 16; lane += kLanes) {
        compute(conv, {.x = x + (row * conv.width + first) * 16 + lane,
                       .w = w + o * filter,
                       .bias = bias == nullptr ? nullptr : bias + o,
                       .y = y + ((o * conv.out_height + row) * conv.out_width + first) * 16 + lane,
                       .relu = relu});
      }
    }
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
