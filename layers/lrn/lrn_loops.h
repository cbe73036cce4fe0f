// The loops of LRN over a sample [C, P], compiled once per instruction set (lrn_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// sum[p] = (or += if `adds`) x[p]^2.
DTRAIN_ISA_DECLARE(void, LrnSquares, (const float* x, int64_t count, bool adds, float* sum))

// scale = k + share sum, y = x scale^-beta.  `sum` becomes scale; y may be x.
DTRAIN_ISA_DECLARE(void, LrnForward,
                   (const float* x, int64_t count, float k, float share, float beta, float* sum,
                    float* y))

// ratio = dy x scale^(-beta - 1), and power = scale^-beta.
DTRAIN_ISA_DECLARE(void, LrnRatios,
                   (const float* x, const float* dy, const float* scale, int64_t count, float beta,
                    float* ratio, float* power))

// dx = dy power - factor x sum.  dx may be dy or sum.
DTRAIN_ISA_DECLARE(void, LrnBackward,
                   (const float* x, const float* dy, const float* power, const float* sum,
                    int64_t count, float factor, float* dx))

}  // namespace dtrain
