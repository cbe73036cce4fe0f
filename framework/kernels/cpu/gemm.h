// dnnl_sgemm for row-major matrices.  Sums that may be cut up anyway (over the batch); a product
// whose rows are samples belongs to packed_gemm.h.
#pragma once

#include <cstdint>

namespace dtrain {

struct Gemm {
  bool trans_a = false;  // A is [m, k] in memory, [k, m] when set
  bool trans_b = false;  // B is [k, n] in memory, [n, k] when set
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool add = false;  // C += instead of C =
};

// C [m, n] = op(A) op(B), with the threads of the OpenMP team.
void Multiply(const Gemm& gemm);

// Vectors of `size` floats, one a row, `stride` floats apart.
struct FloatRows {
  const float* data;
  int64_t stride;
  int64_t size;
};

// The gradient of the weights of y = W x: dw [dy.size, x.size] = (or +=) the sum over `rows` rows
// of dy^T x.
void WeightGradient(int64_t rows, const FloatRows& dy, const FloatRows& x, bool add, float* dw,
                    int64_t dw_stride);

}  // namespace dtrain
