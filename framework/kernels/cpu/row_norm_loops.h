// The passes of row_norm.h over rows, compiled once per instruction set (row_norm_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Holds two sums that are computed together.
struct NormSumPair {
  double first, second;
};

// Returns the sums of x and of x^2.
DTRAIN_ISA_DECLARE(NormSumPair, SumsOfValues, (const float* x, int64_t count))

// Returns the sums of d and of d (x - mean), where d = weight dy, or d = dy if weight is null.
DTRAIN_ISA_DECLARE(NormSumPair, SumsOfGradients,
                   (const float* x, const float* dy, const float* weight, int64_t count,
                    float mean))

// y = (x - mean) inverse weight + bias.  If weight is null, bias is too, and they count as 1 and 0.  y may be x.
DTRAIN_ISA_DECLARE(void, NormaliseRow,
                   (const float* x, int64_t count, float mean, float inverse, const float* weight,
                    const float* bias, float* y))

// y = (x - mean) scale + bias, with the same scale and bias for all elements.
DTRAIN_ISA_DECLARE(void, NormalisePlane,
                   (const float* x, int64_t count, float mean, float scale, float bias, float* y))

// Holds the factors of dx = scale d - from_bias - (x - mean) from_scale.
struct NormGradient {
  float mean, scale, from_bias, from_scale;
};

// Computes dx from `with`, where d = weight dy, or d = dy if weight is null.  dx may be dy.
DTRAIN_ISA_DECLARE(void, NormGradientRow,
                   (const float* x, const float* dy, const float* weight, int64_t count,
                    const NormGradient& with, float* dx))

// dweight += dy (x - mean) inverse, dbias += dy, element by element.
DTRAIN_ISA_DECLARE(void, AddRowGradients,
                   (const float* x, const float* dy, int64_t count, float mean, float inverse,
                    double* dweight, double* dbias))

}  // namespace dtrain
