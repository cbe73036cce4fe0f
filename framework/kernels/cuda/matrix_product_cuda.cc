#include "framework/kernels/cuda/matrix_product.h"

#include "framework/core/check.h"

namespace dtrain {

// cuBLAS is column-major: to it a row-major matrix is its transpose, so it computes c^T = op(b)^T op(a)^T.
void Multiply(CudaQueue& queue, const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c,
              const ProductOptions& options) {
  const int64_t depth = options.transpose_a ? a.rows : a.columns;
  DT_CHECK((options.transpose_a ? a.columns : a.rows) == c.rows &&
           (options.transpose_b ? b.rows : b.columns) == c.columns &&
           (options.transpose_b ? b.columns : b.rows) == depth)
      << a.rows << "x" << a.columns << " times " << b.rows << "x" << b.columns << " into " << c.rows
      << "x" << c.columns;
  if (c.rows == 0 || c.columns == 0) return;
  const auto op = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const float one = 1, beta = options.add ? 1 : 0;
  DT_CUDA(cublasSgemm, queue.blas(), op(options.transpose_b), op(options.transpose_a),
          static_cast<int>(c.columns), static_cast<int>(c.rows), static_cast<int>(depth), &one,
          b.data, static_cast<int>(b.stride), a.data, static_cast<int>(a.stride), &beta, c.data,
          static_cast<int>(c.stride));
}

}  // namespace dtrain
