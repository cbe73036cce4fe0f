// Element types of images and of matrices' copies in a GPU's memory.
//
// A kernel of images is a template of the type.  It reads and writes elements of the type, and computes in float:
//
//   const auto value = static_cast<float>(x[i]);
//   y[i] = static_cast<T>(std::max(value, 0.0f));    // rounds to nearest even
//
//   WithElementType(tensor.dtype, [&]<class T>() { Run<T>(tensor); });
//
// A device lambda must be in Run, not in the lambda that is passed here, because nvcc allows none in a template lambda.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "framework/device/device.h"
#include "framework/device/device_code.h"
#include "framework/device/tensor.h"

namespace dtrain {

template <class F>
decltype(auto) WithElementType(DType type, F f) {
  if (type == DType::kBF16) return f.template operator()<__nv_bfloat16>();
  if (type == DType::kF16) return f.template operator()<__half>();
  return f.template operator()<float>();
}

// Returns the value that an element of the type holds.
DT_DEVICE inline float Rounded(DType type, float value) {
  if (type == DType::kBF16) return static_cast<float>(static_cast<__nv_bfloat16>(value));
  if (type == DType::kF16) return static_cast<float>(static_cast<__half>(value));
  return value;
}

// A kernel writes its numbers in 16 bits here as well, for the products that read them (matrix_product.h).  It writes
// nothing if `data` is null.
struct RoundedCopy {
  uint16_t* data = nullptr;
  DType type = DType::kBF16;  // or kF16

  DT_DEVICE void Store(int64_t i, float value) const {
    if (data == nullptr) return;
    if (type == DType::kBF16) {
      reinterpret_cast<__nv_bfloat16*>(data)[i] = static_cast<__nv_bfloat16>(value);
    } else {
      reinterpret_cast<__half*>(data)[i] = static_cast<__half>(value);
    }
  }
};

// Finds the gradient by the input of a fused ReLU, if there is one.
template <class T>
struct OpenGradient {
  const T* y;  // of the ReLU; null: there is none
  const T* dy;

  DT_DEVICE float At(int64_t i) const {
    return y == nullptr || static_cast<float>(y[i]) > 0 ? static_cast<float>(dy[i]) : 0;
  }
};

// Returns the type to which factors are rounded before they are multiplied.  Images between layers that compute with
// tensor cores have it as well.
constexpr DType FactorTypeOf(Precision precision) {
  if (precision == Precision::kBf16) return DType::kBF16;
  return precision == Precision::kFp16 ? DType::kF16 : DType::kF32;
}

}  // namespace dtrain
