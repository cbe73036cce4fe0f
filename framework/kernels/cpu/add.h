// Sums of whole tensors, shared out among the threads of a rank.
#pragma once

#include <cstdint>

#include "framework/core/isa_dispatch.h"
#include "framework/device/device.h"

namespace dtrain {

// sum[i] += addend[i].  Elementwise, so the same bits for any number of threads and on every
// instruction set.
void AddInto(const Device& device, int64_t count, const float* addend, float* sum);

// One thread's part.
DTRAIN_ISA_DECLARE(void, AddLoop, (int64_t count, const float* addend, float* sum))

}  // namespace dtrain
