// Tensor is a view of memory that another object owns: address, shape, element type and format.
//
// The format is the order of the elements of a logical [N, C, H, W] in memory:
//   kPlain         row-major, PyTorch's contiguous order.  The only format that is sent to other ranks.
//   kChannelsLast  [N, H, W, C]
//   kBatchBlocked  [ceil(N/16), C, H, W, 16]: sixteen images interleaved, so that one vector holds one
//                  pixel of sixteen images and odd channel counts waste nothing.  Lanes beyond N are
//                  computed and ignored; every producer keeps them finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/core/text.h"
#include "framework/device/shape.h"

namespace dtrain {

// The element type is a run-time value, not a template parameter.
enum class DType : uint8_t { kF32, kBF16, kF16, kI32, kU8, kF64 };

constexpr size_t SizeOf(DType dtype) {
  constexpr size_t kBytes[] = {4, 2, 2, 4, 1, 8};
  return kBytes[static_cast<size_t>(dtype)];
}

constexpr std::string_view NameOf(DType dtype) {
  return NameIn({"fp32", "bf16", "fp16", "int32", "uint8", "fp64"}, dtype);
}

enum class Format : uint8_t { kPlain, kChannelsLast, kBatchBlocked };

inline constexpr int64_t kBatchBlock = 16;

constexpr std::string_view NameOf(Format format) {
  return NameIn({"plain", "channels_last", "batch_blocked"}, format);
}

// What a kernel may choose about numbers in memory: their order and type.
struct Form {
  Format format = Format::kPlain;
  DType dtype = DType::kF32;

  constexpr Form() = default;
  constexpr Form(Format order, DType type = DType::kF32) : format(order), dtype(type) {}
  friend bool operator==(const Form&, const Form&) = default;

  bool plain() const { return *this == Form(); }  // that of arenas and of what is sent
};

// Returns "channels_last" or "channels_last bf16".
inline std::string NameOf(const Form& form) {
  std::string name(NameOf(form.format));
  if (form.dtype != DType::kF32) name.append(" ").append(NameOf(form.dtype));
  return name;
}

struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::kF32;
  Format format = Format::kPlain;

  Form form() const { return {format, dtype}; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  int32_t* i32() const { return as<int32_t>(); }
};

// Returns the number of elements that a tensor of this shape occupies in `format`, padding lanes included.
inline int64_t StoredCount(const Shape& shape, Format format) {
  if (format != Format::kBatchBlocked) return shape.count();
  return (shape[0] + kBatchBlock - 1) / kBatchBlock * kBatchBlock * shape.CountFrom(1);
}

// FieldSpec describes one named input of a model, which a data set provides and a graph consumes.
struct FieldSpec {
  std::string name;  // "data", "label"
  DType dtype = DType::kF32;
  // Holds the shape without the batch axis: [1, 28, 28]; [] for a label.  If samples differ in length (sentences) it is
  // that of the longest; a batch is only as long as its longest sample, and its tensors have that length.
  Shape sample_shape;
  int64_t classes = 0;  // upper bound of an int32 field's numbers, exclusive; 0: unknown
};

}  // namespace dtrain
