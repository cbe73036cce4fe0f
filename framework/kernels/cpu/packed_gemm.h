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

#include "framework/core/isa_dispatch.h"

namespace dtrain {

inline constexpr int64_t kPanel = 48;

inline constexpr int64_t PanelsOf(int64_t n) { return (n + kPanel - 1) / kPanel; }
inline constexpr int64_t PackedFloats(int64_t n, int64_t k) { return PanelsOf(n) * kPanel * k; }

// Rows [k_begin, k_begin + count) of the packed B.  Element (k_begin + i, j) of B is
//   weights as PyTorch has them, [n, k], so that C = A W^T:  source[j * stride + i]
//   `transposed`, W [k, n], so that C = A W:                 source[i * stride + j]
// So B may be put together from several matrices, one call each.
struct PackSource {
  const float* source;
  int64_t stride;
  bool transposed;
  int64_t n;
  int64_t k;  // of the whole B
  int64_t k_begin, count;
};

DTRAIN_ISA_DECLARE(void, PackPanels,
                   (const PackSource& source, float* packed, int64_t panel_begin,
                    int64_t panel_end))

struct PackedProduct {
  const float* a;  // row i at a + i * a_stride
  int64_t a_stride;
  const float* packed;
  const float* bias;  // [n], added to every row, or null
  float* c;
  int64_t c_stride;
  int64_t m, n, k;
  bool add = false;  // C += instead of C =
};

// Columns of panels [panel_begin, panel_end).
DTRAIN_ISA_DECLARE(void, MultiplyPacked,
                   (const PackedProduct& product, int64_t panel_begin, int64_t panel_end))

}  // namespace dtrain
