// Sums over rows of floats, and small loops compiled once per instruction set (row_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa_dispatch.h"
#include "framework/device/device.h"
#include "framework/kernels/cpu/matrix.h"

namespace dtrain {

// SumColumns with the columns shared out among the device's threads: the same bits for any number.
void SumOverRows(const Device& device, const ConstMatrix& x, bool accumulate, float* sum);

// sum[j] = (or +=) sum over rows of x[row * stride + j], for j in [0, columns), in the order of
// rows.
DTRAIN_ISA_DECLARE(void, SumColumns,
                   (const float* x, int64_t stride, int64_t rows, int64_t columns, bool accumulate,
                    float* sum))

// y = tanh(x).  y may be x.
DTRAIN_ISA_DECLARE(void, TanhForward, (const float* x, int64_t count, float* y))

// dx = dy (1 - y^2).  dx may be dy.
DTRAIN_ISA_DECLARE(void, TanhBackward, (const float* y, const float* dy, int64_t count, float* dx))

}  // namespace dtrain
