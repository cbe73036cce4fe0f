#include "framework/kernels/cuda/matrix_product.h"

#include "framework/core/check.h"

namespace dtrain {
namespace {

// What cuBLAS is told.  It is column-major: to it a row-major matrix is its transpose, so it computes
// c^T = op(b)^T op(a)^T.
struct BlasProduct {
  BlasProduct(const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c,
              const ProductOptions& options)
      : op_a(options.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N),
        op_b(options.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N),
        m(static_cast<int>(c.columns)),
        n(static_cast<int>(c.rows)),
        k(static_cast<int>(options.transpose_a ? a.rows : a.columns)),
        beta(options.add ? 1 : 0) {
    DT_CHECK((options.transpose_a ? a.columns : a.rows) == c.rows &&
             (options.transpose_b ? b.rows : b.columns) == c.columns &&
             (options.transpose_b ? b.columns : b.rows) == k)
        << a.rows << "x" << a.columns << " times " << b.rows << "x" << b.columns << " into "
        << c.rows << "x" << c.columns;
  }

  bool empty() const { return m == 0 || n == 0; }

  const cublasOperation_t op_a, op_b;
  const int m, n, k;
  const float one = 1, beta;
};

int Leading(const DeviceMatrix& matrix) { return static_cast<int>(matrix.stride); }

// How cuBLAS multiplies fp32 matrices: it rounds the factors itself, and adds in fp32 in all three.
cublasComputeType_t ComputeTypeOf(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::kBf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case Precision::kFp32:
      break;
  }
  return CUBLAS_COMPUTE_32F_PEDANTIC;
}

}  // namespace

void Multiply(CudaQueue& queue, const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c,
              const ProductOptions& options) {
  const BlasProduct p(a, b, c, options);
  if (p.empty()) return;
  DT_CUDA(cublasGemmEx, queue.blas(), p.op_b, p.op_a, p.m, p.n, p.k, &p.one, b.data, CUDA_R_32F,
          Leading(b), a.data, CUDA_R_32F, Leading(a), &p.beta, c.data, CUDA_R_32F, Leading(c),
          ComputeTypeOf(queue.precision()), CUBLAS_GEMM_DEFAULT);
}

void MultiplyEach(CudaQueue& queue, int64_t count, const DeviceMatrices& a, const DeviceMatrices& b,
                  const DeviceMatrices& c, const ProductOptions& options) {
  const BlasProduct p(a.first, b.first, c.first, options);
  if (p.empty()) return;
  DT_CUDA(cublasGemmStridedBatchedEx, queue.blas(), p.op_b, p.op_a, p.m, p.n, p.k, &p.one,
          b.first.data, CUDA_R_32F, Leading(b.first), b.apart, a.first.data, CUDA_R_32F,
          Leading(a.first), a.apart, &p.beta, c.first.data, CUDA_R_32F, Leading(c.first), c.apart,
          static_cast<int>(count), ComputeTypeOf(queue.precision()), CUBLAS_GEMM_DEFAULT);
}

}  // namespace dtrain
