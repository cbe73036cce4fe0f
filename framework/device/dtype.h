// Element types.  Types are values, not a template over the whole tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dtrain {

enum class DType : uint8_t { kF32, kBF16, kI32, kU8, kF64 };

constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kI32:
      return 4;
    case DType::kU8:
      return 1;
    case DType::kF64:
      return 8;
  }
  return 0;
}

constexpr std::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "int32";
    case DType::kU8:
      return "uint8";
    case DType::kF64:
      return "fp64";
  }
  return "?";
}

}  // namespace dtrain
