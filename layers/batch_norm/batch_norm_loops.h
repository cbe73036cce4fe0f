// Batch normalisation's passes over memory, compiled once per instruction set
// (batch_norm_loops_isa.cc).
//
// A *plane* is a run of one channel's values (plain format), a *row* one value of each channel
// (channels last).  With a ReLU behind the layer, `relu`, values that it makes 0 pass no gradient.
#pragma once

#include <cstdint>

#include "framework/core/isa_dispatch.h"

namespace dtrain {

// y = (x - mean) * scale + bias, and dx = scale * dy - from_bias - (x - mean) * from_scale.  One
// value of each for a plane, an array over the channels for rows.
template <class T>
struct NormFactors {
  T mean, scale, bias;
  T from_bias, from_scale;  // backward only
};
using PlaneFactors = NormFactors<float>;
using RowFactors = NormFactors<const float*>;

// sums[0] += sum of (x - pivot), sums[1] += sum of its square.
DTRAIN_ISA_DECLARE(void, PlaneSums, (const float* x, int64_t count, float pivot, double* sums))
// The same for each channel: sums[c] and sums[channels + c], with a pivot for each.
DTRAIN_ISA_DECLARE(void, RowSums,
                   (const float* x, int64_t rows, int64_t channels, const float* pivot,
                    double* sums))

DTRAIN_ISA_DECLARE(void, PlaneNormalise,
                   (const float* x, int64_t count, const PlaneFactors& factors, bool relu,
                    float* y))
DTRAIN_ISA_DECLARE(void, RowNormalise,
                   (const float* x, int64_t rows, int64_t channels, const RowFactors& factors,
                    bool relu, float* y))

// sums[0] += sum of dy, sums[1] += sum of dy * (x - mean).
DTRAIN_ISA_DECLARE(void, PlaneGradientSums,
                   (const float* x, const float* dy, int64_t count, const PlaneFactors& factors,
                    bool relu, double* sums))
DTRAIN_ISA_DECLARE(void, RowGradientSums,
                   (const float* x, const float* dy, int64_t rows, int64_t channels,
                    const RowFactors& factors, bool relu, double* sums))

// dx may be dy.
DTRAIN_ISA_DECLARE(void, PlaneGradient,
                   (const float* x, const float* dy, int64_t count, const PlaneFactors& factors,
                    bool relu, float* dx))
DTRAIN_ISA_DECLARE(void, RowGradient,
                   (const float* x, const float* dy, int64_t rows, int64_t channels,
                    const RowFactors& factors, bool relu, float* dx))

}  // namespace dtrain
