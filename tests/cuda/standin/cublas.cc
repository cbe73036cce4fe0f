// cuBLAS of the stand-in (stream.h): column-major, as the library's.
#include <cublas_v2.h>
#include <cuda_bf16.h>

#include "tests/cuda/standin/stream.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

// Element (row, column) of op(matrix).
float At(const float* matrix, int leading, cublasOperation_t op, int64_t row, int64_t column) {
  return op == CUBLAS_OP_N ? matrix[column * leading + row] : matrix[row * leading + column];
}

struct Product {
  cublasComputeType_t type;
  cublasOperation_t op_a, op_b;
  int m, n, k;
  float alpha;
  const float* a;
  int lda;
  const float* b;
  int ldb;
  float beta;
  float* c;
  int ldc;

  double Factor(float value) const {
    return type == CUBLAS_COMPUTE_32F_FAST_16BF ? __bfloat162float(__float2bfloat16_rn(value))
                                                : value;
  }
};

void Multiply(const Product& p) {
  for (int64_t column = 0; column < p.n; ++column) {
    for (int64_t row = 0; row < p.m; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < p.k; ++i) {
        sum +=
            p.Factor(At(p.a, p.lda, p.op_a, row, i)) * p.Factor(At(p.b, p.ldb, p.op_b, i, column));
      }
      float& c = p.c[column * p.ldc + row];
      c = p.alpha * static_cast<float>(sum) + (p.beta == 0 ? 0 : p.beta * c);
    }
  }
}

bool Fits(const Product& p) {
  return p.m >= 0 && p.n >= 0 && p.k >= 0 && p.lda >= (p.op_a == CUBLAS_OP_N ? p.m : p.k) &&
         p.ldb >= (p.op_b == CUBLAS_OP_N ? p.k : p.n) && p.ldc >= p.m && p.lda > 0 && p.ldb > 0 &&
         p.ldc > 0;
}

// Matrices of fp32, whose factors may be rounded.
bool Knows(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t type) {
  return a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F &&
         (type == CUBLAS_COMPUTE_32F_PEDANTIC || type == CUBLAS_COMPUTE_32F_FAST_TF32 ||
          type == CUBLAS_COMPUTE_32F_FAST_16BF);
}

float Float(const void* value) { return *static_cast<const float*>(value); }
const float* Floats(const void* matrix) { return static_cast<const float*>(matrix); }

}  // namespace

extern "C" {

const char* cublasGetStatusString(cublasStatus_t) { return "a status of the stand-in"; }

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

// alpha and beta are read now: the handle's pointer mode is the host's.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stride_a, const void* b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int batches, cublasComputeType_t type,
                                          cublasGemmAlgo_t) {
  const Product first = {type,
                         op_a,
                         op_b,
                         m,
                         n,
                         k,
                         Float(alpha),
                         Floats(a),
                         lda,
                         Floats(b),
                         ldb,
                         Float(beta),
                         static_cast<float*>(c),
                         ldc};
  if (!Knows(type_a, type_b, type_c, type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!Fits(first)) return CUBLAS_STATUS_INVALID_VALUE;
  dtrain::standin::InStream(handle->stream, [=] {
    for (int64_t i = 0; i < batches; ++i) {
      Product product = first;
      product.a += i * stride_a;
      product.b += i * stride_b;
      product.c += i * stride_c;
      Multiply(product);
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                            int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t type, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b,
                                    type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, type, algorithm);
}

}  // extern "C"
