// cuBLAS of the stand-in (stream.h).  Matrices are column-major, as in the library.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

#include "tests/cuda/standin/stream.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;  // given by the user
  size_t workspace_bytes = 0;
};

namespace {

// A factor of a product: a matrix of fp32, bf16 or fp16 values.
struct Factor {
  const void* data;
  cudaDataType type;
  cublasOperation_t op;
  int leading;

  // Returns element (row, column) of op(matrix).
  double At(int64_t row, int64_t column) const {
    const int64_t at = op == CUBLAS_OP_N ? column * leading + row : row * leading + column;
    if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(data)[at]);
    return type == CUDA_R_16BF ? __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at])
                               : static_cast<const float*>(data)[at];
  }
  int64_t size() const { return type == CUDA_R_32F ? 4 : 2; }
  Factor Behind(int64_t elements) const {
    return {static_cast<const char*>(data) + elements * size(), type, op, leading};
  }
  // What `count` factors of op(rows x columns) read, which are `apart` elements apart.
  dtrain::Access Read(int64_t rows, int64_t columns, int64_t count, int64_t apart) const {
    if (op != CUBLAS_OP_N) std::swap(rows, columns);
    return dtrain::Reads(static_cast<const char*>(data), rows * size())
        .Repeated(columns, static_cast<size_t>(leading * size()))
        .Repeated(apart == 0 ? 1 : count, static_cast<size_t>(apart * size()));
  }
};

struct Product {
  int m, n, k;
  float alpha;
  Factor a, b;
  float beta;
  float* c;
  int ldc;
};

double ValueOf(float value) { return value; }
double ValueOf(__nv_bfloat16 value) { return __bfloat162float(value); }
double ValueOf(__half value) { return __half2float(value); }

// Returns sum_i row[i] column[i], added up in four partial sums.
template <class T>
double Dot(const T* row, const std::vector<double>& column) {
  double sums[4] = {};
  const size_t whole = column.size() / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    for (size_t j = 0; j < 4; ++j) sums[j] += ValueOf(row[i + j]) * column[i + j];
  }
  for (size_t i = whole; i < column.size(); ++i) sums[0] += ValueOf(row[i]) * column[i];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

// Reads `a` in memory order: adds multiples of its columns, or multiplies its rows with a column of
// b.
template <class T>
void Multiply(const Product& p) {
  const auto* const a = static_cast<const T*>(p.a.data);
  std::vector<double> column(static_cast<size_t>(p.k)), sums(static_cast<size_t>(p.m));
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t i = 0; i < p.k; ++i) column[i] = p.b.At(i, n);
    std::fill(sums.begin(), sums.end(), 0);
    for (int64_t i = 0; p.a.op == CUBLAS_OP_N && i < p.k; ++i) {
      const T* const factors = a + i * p.a.leading;
      const double b = column[i];
      for (int64_t m = 0; m < p.m; ++m) sums[m] += ValueOf(factors[m]) * b;
    }
    for (int64_t m = 0; m < p.m; ++m) {
      if (p.a.op != CUBLAS_OP_N) sums[m] = Dot(a + m * p.a.leading, column);
      float& c = p.c[n * p.ldc + m];
      c = p.alpha * static_cast<float>(sums[m]) + (p.beta == 0 ? 0 : p.beta * c);
    }
  }
}

bool Fits(const Product& p) {
  return p.m >= 0 && p.n >= 0 && p.k >= 0 && p.a.leading >= (p.a.op == CUBLAS_OP_N ? p.m : p.k) &&
         p.b.leading >= (p.b.op == CUBLAS_OP_N ? p.k : p.n) && p.ldc >= p.m && p.a.leading > 0 &&
         p.b.leading > 0 && p.ldc > 0;
}

// True for two factors of one type with an fp32 result.
bool Knows(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t type) {
  if (a != b || c != CUDA_R_32F) return false;
  if (a == CUDA_R_16BF || a == CUDA_R_16F) return type == CUBLAS_COMPUTE_32F;
  return a == CUDA_R_32F && (type == CUBLAS_COMPUTE_32F || type == CUBLAS_COMPUTE_32F_FAST_TF32);
}

float Float(const void* value) { return *static_cast<const float*>(value); }

}  // namespace

extern "C" {

const char* cublasGetStatusString(cublasStatus_t) { return "a status of the stand-in"; }

cublasStatus_t cublasGetProperty(libraryPropertyType part, int* value) {
  *value = part == MAJOR_VERSION   ? CUBLAS_VER_MAJOR
           : part == MINOR_VERSION ? CUBLAS_VER_MINOR
                                   : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  *handle = {.stream = stream};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  if (!dtrain::standin::OnDevice(workspace, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

// alpha and beta are read now, because the handle's pointer mode is host.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stride_a, const void* b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int batches, cublasComputeType_t type,
                                          cublasGemmAlgo_t) {
  const Product first = {m,
                         n,
                         k,
                         Float(alpha),
                         {a, type_a, op_a, lda},
                         {b, type_b, op_b, ldb},
                         Float(beta),
                         static_cast<float*>(c),
                         ldc};
  if (!Knows(type_a, type_b, type_c, type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!Fits(first)) return CUBLAS_STATUS_INVALID_VALUE;
  // The real library would take its own, which a captured step must not.
  if (handle->workspace == nullptr ||
      !dtrain::standin::OnDevice(handle->workspace, handle->workspace_bytes)) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (m == 0 || n == 0 || batches == 0) return CUBLAS_STATUS_SUCCESS;
  const dtrain::Access result =
      dtrain::Stores(first.c, m, first.beta != 0)
          .Repeated(n, static_cast<size_t>(ldc) * sizeof(float))
          .Repeated(batches, static_cast<size_t>(stride_c) * sizeof(float));
  const std::vector<dtrain::Access> accesses = {first.a.Read(m, k, batches, stride_a),
                                                first.b.Read(k, n, batches, stride_b), result};
  dtrain::standin::LaunchKernel(handle->stream, "a product of matrices", accesses, [=] {
    for (int64_t i = 0; i < batches; ++i) {
      Product product = first;
      product.a = first.a.Behind(i * stride_a);
      product.b = first.b.Behind(i * stride_b);
      product.c += i * stride_c;
      switch (type_a) {
        case CUDA_R_16BF:
          Multiply<__nv_bfloat16>(product);
          break;
        case CUDA_R_16F:
          Multiply<__half>(product);
          break;
        default:
          Multiply<float>(product);
      }
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
