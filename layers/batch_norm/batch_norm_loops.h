// Batch normalisation's passes over memory are compiled once per instruction set (batch_norm_loops_isa.cc).
//
// A pass processes `rows` rows of `channels` values, one of each channel (channels last).  In plain format a plane of
// one channel is passed as rows of one channel each.  `relu` means that a ReLU is fused behind the layer: no gradient
// flows through values that it sets to 0.
//
// All sums are double.  Products of two floats are exact in double, so the remaining rounding error (1e-16 of the
// largest partial sum) is far below a float's precision for mean and variance, however the rows are divided among
// threads and workers.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Holds the factors of y = (x - mean) * scale + bias and dx = scale * dy - from_bias - (x - mean) * from_scale.
template <class T>
struct NormFactors {
  T mean, scale, bias;
  T from_bias, from_scale;  // read backward only
};
using ChannelFactors = NormFactors<const float*>;  // arrays [channels]

// sums[c] += sum of x, sums[channels + c] += sum of x^2.
DTRAIN_ISA_DECLARE(void, NormSums, (const float* x, int64_t rows, int64_t channels, double* sums))

// y = (x - mean) * scale + bias, then max(0, .) if `relu`. y may be x.  `stream` writes y with non-temporal stores, for
// a y that is too large for the caches.
DTRAIN_ISA_DECLARE(void, NormForward,
                   (const float* x, int64_t rows, int64_t channels, const ChannelFactors& factors,
                    bool relu, bool stream, float* y))

// sums[c] += sum of dy, sums[channels + c] += sum of dy * (x - mean).
DTRAIN_ISA_DECLARE(void, NormGradientSums,
                   (const float* x, const float* dy, int64_t rows, int64_t channels,
                    const ChannelFactors& factors, bool relu, double* sums))

// dx may be dy.
DTRAIN_ISA_DECLARE(void, NormBackward,
                   (const float* x, const float* dy, int64_t rows, int64_t channels,
                    const ChannelFactors& factors, bool relu, float* dx))

// dx = scale * dy, the gradient if mean and deviation do not depend on x. dx may be dy; x is read only if `relu`.
DTRAIN_ISA_DECLARE(void, NormBackwardOfFrozen,
                   (const float* x, const float* dy, int64_t rows, int64_t channels,
                    const ChannelFactors& factors, bool relu, float* dx))

}  // namespace dtrain
