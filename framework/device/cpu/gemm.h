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

}  // namespace dtrain
