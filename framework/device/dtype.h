// Element types.  Types are values, not a template over the whole tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "framework/core/text.h"

namespace dtrain {

enum class DType : uint8_t { kF32, kBF16, kI32, kU8, kF64 };

constexpr size_t SizeOf(DType dtype) {
  constexpr size_t kBytes[] = {4, 2, 4, 1, 8};
  return kBytes[static_cast<size_t>(dtype)];
}

constexpr std::string_view NameOf(DType dtype) {
  return NameIn({"fp32", "bf16", "int32", "uint8", "fp64"}, dtype);
}

}  // namespace dtrain
