#include "framework/kernels/cpu/packed_gemm.h"

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// These are the sizes of a register tile: kRows rows by kWide vectors of columns.
#if defined(DTRAIN_ISA_AVX512)
constexpr int kRows = 8, kWide = 3;
#else
constexpr int kRows = 6, kWide = 2;
#endif

// A sum of more than kDepth terms is computed as a sum of partial sums (slabs), and rows are processed in blocks of
// kRowBlock, so that a block of A stays in the level 2 cache while it is multiplied by a slab of every panel.
constexpr int64_t kDepth = 512;
constexpr int64_t kRowBlock = 512;

// A range of the k terms of each sum; `first` and `last` mark the slab at either end.
struct Slab {
  int64_t begin, end;
  bool first, last;
};

template <int kCount>
DTRAIN_INLINE void SumTile(const float* a, int64_t a_stride, const float* b, int64_t depth,
                           Vec (&sum)[kCount][kWide]) {
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kWide; ++v) sum[r][v] = Zero();
  }
  for (int64_t i = 0; i < depth; ++i, b += kPanel) {
    Vec columns[kWide];
    for (int v = 0; v < kWide; ++v) columns[v] = Load(b + v * kLanes);
    for (int r = 0; r < kCount; ++r) {
      const Vec x = Set1(a[r * a_stride + i]);
      for (int v = 0; v < kWide; ++v) sum[r][v] = Fma(x, columns[v], sum[r][v]);
    }
  }
}

// Returns `sum` plus what C holds already, from earlier slabs or (if `add`) from the caller, plus the bias after the
// last slab.
DTRAIN_INLINE Vec Joined(const PackedProduct& p, const Slab& slab, const float* c,
                         const float* bias, Vec sum) {
  if (!slab.first || p.add) sum = Load(c) + sum;
  if (slab.last && bias != nullptr) sum = sum + Load(bias);
  return sum;
}

// Adds a tile's sums to C.
template <int kCount>
DTRAIN_INLINE void StoreTile(const PackedProduct& p, const Slab& slab, int64_t row, int64_t column,
                             const Vec (&sum)[kCount][kWide]) {
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kWide; ++v) {
      float* c = p.c.data + (row + r) * p.c.stride + column + v * kLanes;
      const float* bias = p.bias == nullptr ? nullptr : p.bias + column + v * kLanes;
      Store(c, Joined(p, slab, c, bias, sum[r][v]));
    }
  }
}

// Does the same as StoreTile for a tile that reaches beyond column n, through a copy of the row.
template <int kCount>
DTRAIN_INLINE void StoreEdge(const PackedProduct& p, const Slab& slab, int64_t row, int64_t column,
                             const Vec (&sum)[kCount][kWide]) {
  float old[kWide * kLanes] = {}, bias[kWide * kLanes] = {};
  const int64_t width = p.c.columns - column;
  for (int64_t j = 0; p.bias != nullptr && j < width; ++j) bias[j] = p.bias[column + j];
  for (int r = 0; r < kCount; ++r) {
    float* c = p.c.data + (row + r) * p.c.stride + column;
    if (!slab.first || p.add) {
      for (int64_t j = 0; j < width; ++j) old[j] = c[j];
    }
    for (int v = 0; v < kWide; ++v) {
      const int at = v * kLanes;
      const float* at_bias = p.bias == nullptr ? nullptr : bias + at;
      Store(old + at, Joined(p, slab, old + at, at_bias, sum[r][v]));
    }
    for (int64_t j = 0; j < width; ++j) c[j] = old[j];
  }
}

template <int kCount, bool kEdge>
DTRAIN_INLINE void Tile(const PackedProduct& p, const Slab& slab, const float* b, int64_t row,
                        int64_t column) {
  Vec sum[kCount][kWide];
  SumTile<kCount>(p.a.data + row * p.a.stride + slab.begin, p.a.stride, b, slab.end - slab.begin,
                  sum);
  if (kEdge) return StoreEdge<kCount>(p, slab, row, column, sum);
  StoreTile<kCount>(p, slab, row, column, sum);
}

template <bool kEdge>
void Tiles(const PackedProduct& p, const Slab& slab, const float* b, int64_t row, int64_t row_end,
           int64_t column) {
  for (; row + kRows <= row_end; row += kRows) Tile<kRows, kEdge>(p, slab, b, row, column);
  for (; row + 2 <= row_end; row += 2) Tile<2, kEdge>(p, slab, b, row, column);
  if (row < row_end) Tile<1, kEdge>(p, slab, b, row, column);
}

// Multiplies rows [row_begin, row_end) of A by one slab of one panel.
void Strip(const PackedProduct& p, const Slab& slab, int64_t row_begin, int64_t row_end,
           int64_t panel) {
  const float* packed = p.packed + (panel * p.a.columns + slab.begin) * kPanel;
  for (int64_t at = 0; at < kPanel; at += kWide * kLanes) {
    const int64_t column = panel * kPanel + at;
    if (column >= p.c.columns) return;
    if (column + kWide * kLanes > p.c.columns) {
      Tiles<true>(p, slab, packed + at, row_begin, row_end, column);
    } else {
      Tiles<false>(p, slab, packed + at, row_begin, row_end, column);
    }
  }
}

}  // namespace

void PackPanels(const PackSource& s, float* packed, int64_t panel_begin, int64_t panel_end) {
  const int64_t n = s.transposed ? s.weights.columns : s.weights.rows;
  const int64_t count = s.transposed ? s.weights.rows : s.weights.columns;
  const int64_t stride = s.weights.stride, step = s.transposed ? 1 : stride;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    float* to = packed + (panel * s.k + s.k_begin) * kPanel;
    const int64_t column = panel * kPanel;
    const int64_t width = n - column < kPanel ? n - column : kPanel;
    for (int64_t i = 0; i < count; ++i, to += kPanel) {
      const float* from =
          s.weights.data + (s.transposed ? i * stride + column : column * stride + i);
      for (int64_t j = 0; j < width; ++j) to[j] = from[j * step];
      for (int64_t j = width; j < kPanel; ++j) to[j] = 0;
    }
  }
}

void MultiplyPacked(const PackedProduct& p, int64_t panel_begin, int64_t panel_end) {
  const int64_t rows = p.a.rows, depth = p.a.columns;
  for (int64_t row = 0; row < rows; row += kRowBlock) {
    const int64_t row_end = row + kRowBlock < rows ? row + kRowBlock : rows;
    for (int64_t k = 0; k < depth; k += kDepth) {
      const int64_t end = k + kDepth < depth ? k + kDepth : depth;
      const Slab slab = {k, end, k == 0, end == depth};
      for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
        Strip(p, slab, row, row_end, panel);
      }
    }
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
