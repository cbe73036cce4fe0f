// Loops that several layers share, those inside them compiled once per instruction set
// (loops_isa.cc).
#pragma once

#include <cstdint>
#include <span>

#include "framework/core/isa.h"
#include "framework/device/device.h"
#include "framework/device/shape.h"
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

// The elementwise half of a GRU (Cho et al. 2014, in the form of PyTorch's torch.nn.GRU), for one
// sample and one step.
//
//   r = sigmoid(xr + hr)    z = sigmoid(xz + hz)    n = tanh(xn + r * hn)    h = (1 - z) n + z h0
//
// x. = W_i. x + b_i. and h. = W_h. h0 + b_h. are matrix products made before.
//
// Floats kept of a step: a row of r, z, n, hn; backward makes the gradients of xr = hr, xz = hz,
// xn, hn of it.
inline constexpr int64_t kGruRow = 4;

// row [4 H]: xr, xz, xn on entry; r, z, n, hn on return.  from_state [3 H]: hr, hz, hn.
// state may be state_before.
DTRAIN_ISA_DECLARE(void, GruForward,
                   (float* row, const float* from_state, const float* state_before, int64_t hidden,
                    float* state))

// row: r, z, n, hn on entry; gradients by xr (= by hr), xz (= by hz), xn, hn on return.  dstate:
// the gradient by h on entry, on return the part of the gradient by h0 that does not go through
// W_h.
DTRAIN_ISA_DECLARE(void, GruBackward,
                   (float* row, const float* state_before, int64_t hidden, float* dstate))

// Throws DataError, with sample and place in the sample, when a token of `shape` [N, ...] is
// outside [0, vocabulary).
void CheckTokens(const int32_t* tokens, const Shape& shape, int64_t vocabulary,
                 int64_t first_position, uint64_t step);

// The gradient of an embedding: row w of dw [vocabulary, size] = (or +=, if `accumulate`) the sum
// of the rows of dy [tokens, size] whose token is w.  Added in the order of the tokens; threads
// share out the vocabulary, so the bits do not depend on their number.
void EmbeddingGradient(int threads, std::span<const int32_t> tokens, const ConstMatrix& dy,
                       int64_t vocabulary, bool accumulate, float* dw);

}  // namespace dtrain
