// Reorder: the same tensor in another format (device/tensor.h).
#pragma once

#include "framework/device/device.h"
#include "framework/device/tensor.h"

namespace dtrain {

// Copies `from` to `to`: equal shapes, fp32, memory apart.  Lanes beyond the batch become 0.
void Reorder(const Tensor& from, const Tensor& to, const Device& device);

}  // namespace dtrain
