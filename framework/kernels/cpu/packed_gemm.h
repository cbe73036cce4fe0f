// Matrix products C [m, n] = A [m, k] B [k, n] whose rows do not depend on each other.  B is packed once, for any
// number of products.
//
// Every element of C is one fixed chain of additions in the order of k, independent of m, of the threads and of the
// other rows.  So a sample's result is bitwise the same in any batch, as kernel.h requires; dnnl_sgemm does not
// guarantee that.  Packing pays off if B is used often (the weights of a recurrent layer) or m is large.
//
// The packed form is a sequence of panels of kPanel columns; panel p holds rows 0 to k - 1 of the columns of B from
// p * kPanel on, row-major.  Columns beyond n are 0.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"
#include "framework/kernels/cpu/matrix.h"

namespace dtrain {

inline constexpr int64_t kPanel = 48;

inline constexpr int64_t PanelsOf(int64_t n) { return (n + kPanel - 1) / kPanel; }
inline constexpr int64_t PackedFloats(int64_t n, int64_t k) { return PanelsOf(n) * kPanel * k; }

// The source of rows [k_begin, k_begin + count) of the packed B [k, n], one of
//   W [n, count], PyTorch's layout, so that C = A W^T
//   W [count, n] if `transposed`, so that C = A W
// B may be assembled from several matrices, with one call of PackPanels for each.
struct PackSource {
  ConstMatrix weights;
  bool transposed = false;
  int64_t k = 0;  // of the whole B
  int64_t k_begin = 0;

  int64_t n() const { return transposed ? weights.columns : weights.rows; }

  // Returns the source for a matrix that is the whole of B.
  static PackSource Whole(const ConstMatrix& weights) { return {weights, false, weights.columns}; }
  static PackSource WholeTransposed(const ConstMatrix& weights) {
    return {weights, true, weights.rows};
  }
};

DTRAIN_ISA_DECLARE(void, PackPanels,
                   (const PackSource& source, float* packed, int64_t panel_begin,
                    int64_t panel_end))

struct PackedProduct {
  ConstMatrix a;        // [m, k]
  const float* packed;  // B [k, n]
  const float* bias;    // [n], added to every row, or null
  Matrix c;             // [m, n]
  bool add = false;     // C += instead of C =
};

// Computes the columns of C that belong to panels [panel_begin, panel_end).
DTRAIN_ISA_DECLARE(void, MultiplyPacked,
                   (const PackedProduct& product, int64_t panel_begin, int64_t panel_end))

// C [m, n] = A B, or += if `add`, computed by dnnl_sgemm (onednn.cc) with the threads of the OpenMP team.  The order of
// additions is dnnl_sgemm's, so use it only where it does not matter, as in sums over the batch.
struct Gemm {
  ConstMatrix a;  // [m, k]; [k, m] when trans_a
  ConstMatrix b;  // [k, n]; [n, k] when trans_b
  Matrix c;
  bool add = false;
  bool trans_a = false;
  bool trans_b = false;
};
void Multiply(const Gemm& gemm);

// Computes the weight gradient of y = W x: dw = (or += if `add`) dy^T x, a sum over the rows.
void WeightGradient(const ConstMatrix& dy, const ConstMatrix& x, bool add, const Matrix& dw);

}  // namespace dtrain
