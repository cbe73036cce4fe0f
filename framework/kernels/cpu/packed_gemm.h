// Matrix products whose rows do not depend on each other: C [m, n] = A [m, k] B, with B laid out
// once (packed) for any number of products.
//
// Every element of C is one fixed chain of additions in the order of k, whatever m, the threads and
// the rows beside it, so that a sample has the same bits in any batch (the contract of kernel.h,
// which dnnl_sgemm does not keep).  Packing pays where B is used often (the weights of a recurrent
// layer) or m is large.
//
// Packed: panels of kPanel columns, panel p holding B[0 .. k)[p * kPanel ..) row after row; columns
// beyond n are 0.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"
#include "framework/kernels/cpu/matrix.h"

namespace dtrain {

inline constexpr int64_t kPanel = 48;

inline constexpr int64_t PanelsOf(int64_t n) { return (n + kPanel - 1) / kPanel; }
inline constexpr int64_t PackedFloats(int64_t n, int64_t k) { return PanelsOf(n) * kPanel * k; }

// Rows [k_begin, k_begin + count) of the packed B [k, n], from
//   weights as PyTorch has them, [n, count], so that C = A W^T
//   `transposed`, W [count, n], so that C = A W
// So B may be put together from several matrices, one call each.
struct PackSource {
  ConstMatrix weights;
  bool transposed = false;
  int64_t k = 0;  // of the whole B
  int64_t k_begin = 0;

  int64_t n() const { return transposed ? weights.columns : weights.rows; }

  // A matrix that is all of B.
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

// Columns of panels [panel_begin, panel_end).
DTRAIN_ISA_DECLARE(void, MultiplyPacked,
                   (const PackedProduct& product, int64_t panel_begin, int64_t panel_end))

// C [m, n] = A B, or += if `add`, by dnnl_sgemm (onednn.cc) with the threads of the OpenMP team:
// for sums that may be cut up anyway (over the batch).
struct Gemm {
  ConstMatrix a;  // [m, k]; [k, m] when trans_a
  ConstMatrix b;  // [k, n]; [n, k] when trans_b
  Matrix c;
  bool add = false;
  bool trans_a = false;
  bool trans_b = false;
};
void Multiply(const Gemm& gemm);

// The gradient of the weights of y = W x: dw = (or +=, if `add`) the sum over rows of dy^T x.
void WeightGradient(const ConstMatrix& dy, const ConstMatrix& x, bool add, const Matrix& dw);

}  // namespace dtrain
