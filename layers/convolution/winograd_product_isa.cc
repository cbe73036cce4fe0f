// Computes the matrix products of the Winograd convolution, with a register tile of six rows.
#include "framework/device/cpu/simd.h"
#include "layers/convolution/winograd_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

constexpr int kRows = 6;
constexpr int kVectors = kRegisters / 8;  // leaves registers for columns of b and one element of a

template <int R, int V>
void Tile(const WinogradFactors& size, const float* a, const float* b, bool add, float* c) {
  Vec sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      sum[r][v] = add ? Load(c + r * kWinogradBlock + v * kLanes) : Zero();
    }
  }
  for (int64_t k = 0; k < size.terms; ++k, a += size.a_term, b += kWinogradBlock) {
    Vec column[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) column[v] = Load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec element = Set1(a[r * size.a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] = Fma(element, column[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) Store(c + r * kWinogradBlock + v * kLanes, sum[r][v]);
  }
}

template <int V>
void Columns(const WinogradFactors& size, const float* a, const float* b, bool add, float* c) {
  int64_t row = 0;
  for (; row + kRows <= size.rows; row += kRows) {
    Tile<kRows, V>(size, a + row * size.a_row, b, add, c + row * kWinogradBlock);
  }
  for (; row + 4 <= size.rows; row += 4) {
    Tile<4, V>(size, a + row * size.a_row, b, add, c + row * kWinogradBlock);
  }
  for (; row < size.rows; ++row) {
    Tile<1, V>(size, a + row * size.a_row, b, add, c + row * kWinogradBlock);
  }
}

}  // namespace

void WinogradProduct(const WinogradFactors& size, const float* a, const float* b, bool add,
                     float* c) {
  int64_t column = 0;
  for (; column + kVectors * kLanes <= size.columns; column += kVectors * kLanes) {
    Columns<kVectors>(size, a, b + column, add, c + column);
  }
  for (; column < size.columns; column += kLanes) Columns<1>(size, a, b + column, add, c + column);
}

}  // namespace dtrain::DTRAIN_ISA_NS
