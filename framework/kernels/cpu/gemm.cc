#include "framework/kernels/cpu/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include "framework/core/check.h"

namespace dtrain {

void Multiply(const Gemm& g) {
  const dnnl_status_t status =
      dnnl_sgemm(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.m, g.n, g.k, 1.0f, g.a, g.a_stride,
                 g.b, g.b_stride, g.add ? 1.0f : 0.0f, g.c, g.c_stride);
  DT_CHECK(status == dnnl_success)
      << "dnnl_sgemm " << g.m << "x" << g.n << "x" << g.k << ": " << status;
}

void WeightGradient(int64_t rows, const FloatRows& dy, const FloatRows& x, bool add, float* dw,
                    int64_t dw_stride) {
  Multiply({.trans_a = true,
            .m = dy.size,
            .n = x.size,
            .k = rows,
            .a = dy.data,
            .a_stride = dy.stride,
            .b = x.data,
            .b_stride = x.stride,
            .c = dw,
            .c_stride = dw_stride,
            .add = add});
}

}  // namespace dtrain
