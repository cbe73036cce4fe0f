// Reorder converts a tensor to another format (device/tensor.h).
#pragma once

#include "framework/device/device.h"
#include "framework/device/tensor.h"

namespace dtrain {

// Copies `from` to `to`, which must be fp32 tensors of the same shape in separate memory.  In the batch_blocked format
// lanes beyond the batch become 0.
void Reorder(const Tensor& from, const Tensor& to, const Device& device);

}  // namespace dtrain
