// dnnl_sgemm for row-major matrices.  Sums that may be cut up anyway (over the batch); a product
// whose rows are samples belongs to packed_gemm.h.
#pragma once

#include "framework/kernels/cpu/matrix.h"

namespace dtrain {

// C [m, n] = A B, or += if `add`, with the threads of the OpenMP team.
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
