#include "framework/kernels/cuda/matrix_product.h"

#include "framework/core/check.h"
#include "framework/kernels/cuda/element_types.h"
#include "framework/kernels/cuda/rows.h"

namespace dtrain {
namespace {

// The arguments for cuBLAS. It is column-major and reads a row-major matrix as its transpose, so it is called to
// compute c^T = op(b)^T op(a)^T.
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

// One factor of `count` products as cuBLAS reads it: each matrix begins `apart` numbers after the previous one.
struct Factor {
  const void* data;
  cudaDataType type = CUDA_R_32F;
  int leading;
  int64_t apart;
};

cudaDataType BlasTypeOf(DType type) { return type == DType::kF16 ? CUDA_R_16F : CUDA_R_16BF; }

// Rounds the factor to the precision's 16 bits, if it has such and that is not done. cuBLAS's own modes (FAST_16BF,
// FAST_16F) would only allow it to round; it might choose fp32 or TF32 instead.
Factor FactorOf(CudaQueue& queue, int number, int64_t count, const DeviceMatrices& matrices) {
  const DeviceMatrix& matrix = matrices.first;
  const DType type = FactorTypeOf(queue.precision());
  if (type == DType::kF32) {
    return {matrix.data, CUDA_R_32F, Leading(matrix), matrices.apart};
  }
  const bool aligned = reinterpret_cast<uintptr_t>(matrix.rounded) % 16 == 0;
  if (matrix.rounded != nullptr && aligned && count == 1) {
    return {matrix.rounded, BlasTypeOf(type), static_cast<int>(matrix.rounded_stride), 0};
  }
  DT_CHECK(matrix.data != nullptr)
      << "the factor has 16 bits alone, which this product cannot read";
  const int64_t stride = WholePacks(matrix.columns);  // multiples of 16 bytes, for tensor cores
  const int64_t apart = matrix.rows * stride;
  void* const room = queue.FactorRoom(number, static_cast<size_t>(count * apart) * 2);
  RoundRows(queue, count, matrices, stride, type, room);
  return {room, BlasTypeOf(type), static_cast<int>(stride), apart};
}

// Returns the matrix with rows of `stride` numbers in `room` for its 16 bits, if the precision has such.
DeviceMatrix WithRoom(const CudaQueue& queue, DeviceMatrix matrix, float* room, int64_t stride) {
  if (RoomToRound(queue, 1) == 0) return matrix;
  matrix.rounded = reinterpret_cast<uint16_t*>(room);
  matrix.rounded_stride = stride;
  return matrix;
}

// TF32 is only allowed, not required: cuBLAS uses fp32 where it expects that to be faster.
cublasComputeType_t ComputeTypeOf(Precision precision) {
  return precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace

void Multiply(CudaQueue& queue, const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c,
              const ProductOptions& options) {
  const BlasProduct p(a, b, c, options);
  if (p.empty()) return;
  const Factor left = FactorOf(queue, 0, 1, {a}), right = FactorOf(queue, 1, 1, {b});
  DT_CUDA(cublasGemmEx, queue.blas(), p.op_b, p.op_a, p.m, p.n, p.k, &p.one, right.data, right.type,
          right.leading, left.data, left.type, left.leading, &p.beta, c.data, CUDA_R_32F,
          Leading(c), ComputeTypeOf(queue.precision()), CUBLAS_GEMM_DEFAULT);
}

int64_t RoomToRound(const CudaQueue& queue, int64_t numbers) {
  return FactorTypeOf(queue.precision()) == DType::kF32 ? 0 : (numbers + 1) / 2;
}

DeviceMatrix ToRoundIn(const CudaQueue& queue, DeviceMatrix matrix, float* room) {
  return matrix.stride % 8 == 0 ? WithRoom(queue, matrix, room, matrix.stride) : matrix;
}

DeviceMatrix ToRoundPaddedIn(const CudaQueue& queue, DeviceMatrix matrix, float* room) {
  return WithRoom(queue, matrix, room, WholePacks(matrix.columns));
}

void RoundOnce(CudaQueue& queue, const DeviceMatrix& matrix) {
  if (matrix.rounded == nullptr) return;
  const DType type = FactorTypeOf(queue.precision());
  RoundRows(queue, 1, {matrix}, matrix.rounded_stride, type, matrix.rounded);
}

RoundedCopy CopyOf(const CudaQueue& queue, const DeviceMatrix& matrix) {
  DT_CHECK(matrix.rounded == nullptr || matrix.rounded_stride == matrix.stride);
  return {matrix.rounded, FactorTypeOf(queue.precision())};
}

void MultiplyEach(CudaQueue& queue, int64_t count, const DeviceMatrices& a, const DeviceMatrices& b,
                  const DeviceMatrices& c, const ProductOptions& options) {
  const BlasProduct p(a.first, b.first, c.first, options);
  if (p.empty()) return;
  const Factor left = FactorOf(queue, 0, count, a), right = FactorOf(queue, 1, count, b);
  DT_CUDA(cublasGemmStridedBatchedEx, queue.blas(), p.op_b, p.op_a, p.m, p.n, p.k, &p.one,
          right.data, right.type, right.leading, right.apart, left.data, left.type, left.leading,
          left.apart, &p.beta, c.first.data, CUDA_R_32F, Leading(c.first), c.apart,
          static_cast<int>(count), ComputeTypeOf(queue.precision()), CUBLAS_GEMM_DEFAULT);
}

}  // namespace dtrain
