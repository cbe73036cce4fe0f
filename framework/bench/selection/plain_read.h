// PlainRead: what any pass over values costs at least; selections are measured beside it.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// A number that depends on every one of values[0..n), so that all are read.
DTRAIN_ISA_DECLARE(uint32_t, PlainRead, (const float* values, int64_t n))

}  // namespace dtrain
