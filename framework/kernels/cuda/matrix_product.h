// Products of row-major matrices on the GPU, by cuBLAS.
#pragma once

#include <cstdint>

#include "framework/device/cuda/queue.h"

namespace dtrain {

// Rows of `columns` numbers, `stride` apart (>= columns).
struct DeviceMatrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;

  static DeviceMatrix Dense(const float* data, int64_t rows, int64_t columns) {
    return {const_cast<float*>(data), rows, columns, columns};
  }

  DeviceMatrix Rows(int64_t first, int64_t count) const {
    return {data + first * stride, count, columns, stride};
  }
  DeviceMatrix Columns(int64_t first, int64_t count) const {
    return {data + first, rows, count, stride};
  }
  // Rows first, first + step, first + 2 step, ...: of a tensor [N, T, W] the step `first` of T.
  DeviceMatrix Every(int64_t step, int64_t first, int64_t count) const {
    return {data + first * stride, count, columns, step * stride};
  }
};

// c = op(a) op(b), or c += with `add`; op transposes where asked.  The sizes must fit.
struct ProductOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool add = false;
};
void Multiply(CudaQueue& queue, const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c,
              const ProductOptions& options = {});

// Matrices of one size, their beginnings `apart` numbers from each other.
struct DeviceMatrices {
  DeviceMatrix first;
  int64_t apart = 0;
};
// The product of `count` pairs.
void MultiplyEach(CudaQueue& queue, int64_t count, const DeviceMatrices& a, const DeviceMatrices& b,
                  const DeviceMatrices& c, const ProductOptions& options = {});

}  // namespace dtrain
