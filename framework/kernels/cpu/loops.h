// Declares loops that several layers share.  The DTRAIN_ISA_DECLARE functions are compiled once per instruction set
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

// Calls SumColumns with the columns divided among the device's threads; the result is bitwise the same for any number
// of threads.
void SumOverRows(const Device& device, const ConstMatrix& x, bool accumulate, float* sum);

// sum[j] = (or +=) the sum over rows of x[row * stride + j], for j in [0, columns), added in the order of the rows.
DTRAIN_ISA_DECLARE(void, SumColumns,
                   (const float* x, int64_t stride, int64_t rows, int64_t columns, bool accumulate,
                    float* sum))

// sum[i] += addend[i].  The result is bitwise the same for any number of threads and on every instruction set, since
// each element is one addition.
void AddInto(const Device& device, int64_t count, const float* addend, float* sum);

// Does one thread's part of AddInto.
DTRAIN_ISA_DECLARE(void, AddLoop, (int64_t count, const float* addend, float* sum))

// Computes the backward pass of a ReLU that is fused into another layer: dy = 0 where y is 0.
void MaskGradient(int threads, int64_t count, const float* y, float* dy);

// Holds the random stream, threshold and scale that DropElements uses for one sample.
struct DropoutSample {
  uint32_t key[2];           // Random::key()
  uint32_t counter_high[2];  // Random::counter_high()
  uint32_t threshold;
  float scale;
};

// Returns the parameters for dropping elements with probability `ratio` and scaling the others by 1 / (1 - ratio).
DropoutSample SampleOf(const Random& random, double ratio);

// y[i] = 0 if word i of the sample's random numbers is < threshold, else scale * x[i].  y may be x.
DTRAIN_ISA_DECLARE(void, DropElements,
                   (const DropoutSample& sample, const float* x, int64_t count, float* y))

// The elementwise half of a GRU (Cho et al. 2014, in the form of PyTorch's torch.nn.GRU), for one
// sample and one step.
//
//   r = sigmoid(xr + hr)    z = sigmoid(xz + hz)    n = tanh(xn + r * hn)    h = (1 - z) n + z h0
//
// The caller has computed the matrix products xg = W_ig x + b_ig and hg = W_hg h0 + b_hg for each gate g.
//
// Floats per state element that are kept of a step: a row of r, z, n, hn, which the backward pass overwrites with the
// gradients by xr (= hr), xz (= hz), xn, hn.
inline constexpr int64_t kGruRow = 4;

// row [4 H]: xr, xz, xn on entry; r, z, n, hn on return.  from_state [3 H]: hr, hz, hn.
// state may be state_before.
DTRAIN_ISA_DECLARE(void, GruForward,
                   (float* row, const float* from_state, const float* state_before, int64_t hidden,
                    float* state))

// row: r, z, n, hn on entry; gradients by xr (= by hr), xz (= by hz), xn, hn on return.  dstate is the gradient by h on
// entry, and on return the part of the gradient by h0 that does not pass through W_h.
DTRAIN_ISA_DECLARE(void, GruBackward,
                   (float* row, const float* state_before, int64_t hidden, float* dstate))

// Throws DataError, with sample and place in the sample, when a token of `shape` [N, ...] is
// outside [0, vocabulary).
void CheckTokens(const int32_t* tokens, const Shape& shape, int64_t vocabulary,
                 int64_t first_position, uint64_t step);

// Computes the gradient of an embedding: row w of dw [vocabulary, size] = (or += if `accumulate`) the sum of the rows
// of dy [tokens, size] whose token is w, added in the order of the tokens.  Threads divide the vocabulary, so the
// result is bitwise the same for any number of threads.
void EmbeddingGradient(int threads, std::span<const int32_t> tokens, const ConstMatrix& dy,
                       int64_t vocabulary, bool accumulate, float* dw);

}  // namespace dtrain
