// Additive attention for one sentence at one step is compiled once per instruction set (attention_loops_isa.cc).  Every
// sum has a fixed order, so the result is bitwise the same on every instruction set.
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

struct Attention {
  const float* keys;     // [S, A]: attn's encoder half applied to h_j, bias included
  const float* values;   // [S, C]: h_j
  const float* query;    // [A]: attn's state half applied to s_{t-1}
  const float* v;        // [A]
  int64_t length;        // positions before the padding, <= S
  int64_t source;        // S
  int64_t size;          // A
  int64_t context_size;  // C
};

// weights [S] = softmax of v . tanh(keys + query), 0 at padding;  context [C] = weights . values.
DTRAIN_ISA_DECLARE(void, Attend, (const Attention& attention, float* weights, float* context))

// Computes the gradients from dcontext, the gradient by the context: adds to dkeys [S, A], writes dquery [A], adds to
// dv [A].  `room` is scratch memory for S floats.
DTRAIN_ISA_DECLARE(void, AttendBackward,
                   (const Attention& attention, const float* weights, const float* dcontext,
                    float* room, float* dkeys, float* dquery, float* dv))

// dvalues [S, C] = sum over steps t of weights [T, S] dcontext [T, C] (rows `stride` apart).
DTRAIN_ISA_DECLARE(void, ValueGradients,
                   (const float* weights, const float* dcontext, int64_t stride, int64_t steps,
                    int64_t source, int64_t context_size, float* dvalues))

// Returns the index of the largest element, the first of equal ones.
DTRAIN_ISA_DECLARE(int64_t, LargestOf, (const float* x, int64_t count))

// x -= log(sum of exp(x)).
DTRAIN_ISA_DECLARE(void, LogSoftmax, (float* x, int64_t count))

}  // namespace dtrain
