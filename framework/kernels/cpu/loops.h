// Loops that several layers share, those inside them compiled once per instruction set
// (loops_isa.cc, dropout_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"
#include "framework/device/device.h"
#include "framework/kernels/cpu/matrix.h"

namespace dtrain {

class Random;

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

// sum[i] += addend[i].  Elementwise, so the same bits for any number of threads and on every
// instruction set.
void AddInto(const Device& device, int64_t count, const float* addend, float* sum);

// One thread's part.
DTRAIN_ISA_DECLARE(void, AddLoop, (int64_t count, const float* addend, float* sum))

// The backward pass of a ReLU that is fused into a convolution: the gradient is 0 where the output
// is.
void MaskGradient(int threads, int64_t count, const float* y, float* dy);

// Dropout of one sample.
struct DropoutSample {
  uint32_t key[2];           // Random::key()
  uint32_t counter_high[2];  // Random::counter_high()
  uint32_t threshold;
  float scale;
};

// Elements are dropped with probability `ratio`, those kept are scaled by 1 / (1 - ratio).
DropoutSample SampleOf(const Random& random, double ratio);

// y[i] = word i of the sample's random numbers < threshold ? 0 : scale * x[i].  y may be x.
DTRAIN_ISA_DECLARE(void, DropElements,
                   (const DropoutSample& sample, const float* x, int64_t count, float* y))

}  // namespace dtrain
