// Dropout of one sample, compiled once per instruction set (dropout_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa_dispatch.h"

namespace dtrain {

class Random;

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
