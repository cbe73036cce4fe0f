// FieldSpec: one named input of a model, as a data set gives it and a graph takes it.
#pragma once

#include <cstdint>
#include <string>

#include "framework/device/dtype.h"
#include "framework/device/shape.h"

namespace dtrain {

struct FieldSpec {
  std::string name;  // "data", "label"
  DType dtype = DType::kF32;
  // Without the batch axis: [1, 28, 28]; [] for a label.  Of the longest sample where they differ
  // (sentences): a batch is as long as it must be, and its tensors say how long.
  Shape sample_shape;
  int64_t classes = 0;  // an int32 field holds numbers below this; 0: unknown
};

}  // namespace dtrain
