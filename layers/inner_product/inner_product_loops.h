// The loops of the inner product are compiled once per instruction set (inner_product_loops_isa.cc).
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// The arguments of y = x w^T + bias, then max(0, .) if `relu`, with x [batch, in] and y [batch, out] in the format
// batch_blocked (device/tensor.h): a vector holds one feature of sixteen samples, so no sum combines lanes.
struct BlockedProduct {
  const float* x;
  const float* w;     // [out, in], plain
  const float* bias;  // [out], or null
  float* y;
  int64_t blocks;  // blocks of sixteen samples
  int64_t in, out;
  bool relu;
};

// Computes outputs [o_begin, o_end) of all blocks.  Every output is one fixed chain of additions in the order of the
// features, independent of the number of blocks and the range of outputs.
DTRAIN_ISA_DECLARE(void, MultiplyBlocked,
                   (const BlockedProduct& product, int64_t o_begin, int64_t o_end))

// Sets dy [batch, out] to 0 where y <= 0, unless y is null, and bias_gradient[o] = (or += if `accumulate`) sum_n dy[n,
// o], unless bias_gradient is null.  All are in plain format.
DTRAIN_ISA_DECLARE(void, MaskAndSumRows,
                   (float* dy, const float* y, int64_t batch, int64_t out, bool accumulate,
                    float* bias_gradient))

}  // namespace dtrain
