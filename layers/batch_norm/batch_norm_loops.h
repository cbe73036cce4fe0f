// Batch normalisation's passes over memory, compiled once per instruction set
// (batch_norm_loops_isa.cc).
//
// A pass goes over `rows` rows of `channels` values, one of each channel (channels last).  A plane
// of one channel (plain format) is as many rows of one channel.  With a ReLU behind the layer,
// `relu`, values that it makes 0 pass no gradient.
//
// Sums are double throughout: products of two floats are exact in double, so what rounding is left
// (1e-16 of the largest partial sum) is far below what a float keeps of mean and variance, however
// the rows are divided among threads and workers.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// y = (x - mean) * scale + bias, and dx = scale * dy - from_bias - (x - mean) * from_scale.
template <class T>
struct NormFactors {
  T mean, scale, bias;
  T from_bias, from_scale;  // read backward only
};
using ChannelFactors = NormFactors<const float*>;  // an array over the channels for each

// sums[c] += sum of x, sums[channels + c] += sum of x^2.
DTRAIN_ISA_DECLARE(void, NormSums, (const float* x, int64_t rows, int64_t channels, double* sums))

// y may be x.  `stream`: y is too large to stay in the caches, so it is written past them.
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

// dx = scale * dy, the gradient where mean and deviation do not follow from x.  dx may be dy; x is read with `relu` alone.
DTRAIN_ISA_DECLARE(void, NormBackwardOfFrozen,
                   (const float* x, const float* dy, int64_t rows, int64_t channels,
                    const ChannelFactors& factors, bool relu, float* dx))

}  // namespace dtrain
