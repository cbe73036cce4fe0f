// PlainRead measures the least cost of a pass over values; selections are compared with it.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Returns a number that depends on all of values[0..n), so that all are read.
DTRAIN_ISA_DECLARE(uint32_t, PlainRead, (const float* values, int64_t n))

}  // namespace dtrain
