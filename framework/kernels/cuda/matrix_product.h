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
};

// c = op(a) op(b), or c += with `add`; op transposes where asked.  The sizes must fit.
struct ProductOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool add = false;
};
void Multiply(CudaQueue& queue, const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c,
              const ProductOptions& options = {});

}  // namespace dtrain
