// What several layers' kernels do with the rows of a matrix on the GPU.
#pragma once

#include "framework/core/random.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/matrix_product.h"

namespace dtrain {

// data[i] = 0, of `count` numbers.
void ZeroFloats(CudaQueue& queue, float* data, int64_t count);

// to = the numbers of `count` matrices in bf16, to nearest even, one matrix behind the other, its rows `stride`
// apart; what is behind a row is left alone.
void RoundRowsToBf16(CudaQueue& queue, int64_t count, const DeviceMatrices& matrices,
                     int64_t stride, void* to);

// Every row of `to` = values [columns].
void FillRows(CudaQueue& queue, const float* values, const DeviceMatrix& to);

// y += bias in each row, then max(0, y) if `relu`, which keeps a NaN; bias may be null.
void AddBias(CudaQueue& queue, const DeviceMatrix& y, const float* bias, bool relu);

// The backward pass of a fused ReLU: the gradient is 0 where the output is.
void MaskGradient(CudaQueue& queue, int64_t count, const float* y, float* dy);

// sum[j] = (or +=) the sum over rows of x[row][j].
void SumOverRows(CudaQueue& queue, const DeviceMatrix& x, bool accumulate, float* sum);

// Row i of `to` = the row of `from` that tokens[i * apart] names; NaNs for what is no token, which the
// loss then tells of.
void TakeRows(CudaQueue& queue, const int32_t* tokens, int64_t apart, const DeviceMatrix& from,
              const DeviceMatrix& to);

// lengths[n] = the length of sentence n of tokens [sentences, steps] (nn/tokens.h).
void FindLengths(CudaQueue& queue, const int32_t* tokens, int64_t sentences, int64_t steps,
                 int64_t pad, int32_t* lengths);

// Dropout: element i of row n is set to 0 where random_of(n).Bits(i) < ratio * 2^32, else scaled by
// 1 / (1 - ratio).  `to` may be `from`.  random_of: a DT_DEVICE lambda from n to a Random.  Each
// index makes one block of random numbers, four words, for as many elements of a row.
template <class RandomOf>
void DropRows(CudaQueue& queue, double ratio, RandomOf random_of, const DeviceMatrix& from,
              const DeviceMatrix& to) {
  const auto threshold = static_cast<uint32_t>(ratio * 0x1p32);
  const auto scale = static_cast<float>(1 / (1 - ratio));
  const int64_t blocks = (from.columns + 3) / 4;
  ForEach(queue, from.rows * blocks, [=] DT_DEVICE(int64_t at) {
    const int64_t n = at / blocks, block = at % blocks;
    const auto words = random_of(n).Block(static_cast<uint64_t>(block));
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t i = block * 4 + k;
      if (i >= from.columns) return;
      const float kept = scale * from.data[n * from.stride + i];
      to.data[n * to.stride + i] = words[static_cast<size_t>(k)] < threshold ? 0 : kept;
    }
  });
}

}  // namespace dtrain
