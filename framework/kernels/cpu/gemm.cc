#include "framework/kernels/cpu/packed_gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include "framework/core/check.h"

namespace dtrain {

void Multiply(const Gemm& g) {
  const int64_t depth = g.trans_a ? g.a.rows : g.a.columns;
  DT_CHECK(depth == (g.trans_b ? g.b.columns : g.b.rows)) << depth;
  DT_CHECK(g.c.rows == (g.trans_a ? g.a.columns : g.a.rows)) << g.c.rows;
  DT_CHECK(g.c.columns == (g.trans_b ? g.b.rows : g.b.columns)) << g.c.columns;
  const dnnl_status_t status = dnnl_sgemm(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.c.rows,
                                          g.c.columns, depth, 1.0f, g.a.data, g.a.stride, g.b.data,
                                          g.b.stride, g.add ? 1.0f : 0.0f, g.c.data, g.c.stride);
  DT_CHECK(status == dnnl_success)
      << "dnnl_sgemm " << g.c.rows << "x" << g.c.columns << "x" << depth << ": " << status;
}

void WeightGradient(const ConstMatrix& dy, const ConstMatrix& x, bool add, const Matrix& dw) {
  Multiply({.a = dy, .b = x, .c = dw, .add = add, .trans_a = true});
}

}  // namespace dtrain
