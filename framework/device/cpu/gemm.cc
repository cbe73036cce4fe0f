#include "framework/device/cpu/gemm.h"

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

}  // namespace dtrain
