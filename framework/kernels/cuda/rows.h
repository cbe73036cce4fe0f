// Defines operations on the rows of a matrix on the GPU that several layers' kernels share.
#pragma once

#include "framework/core/random.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/kernels/cuda/matrix_product.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// data[i] = 0 for 0 <= i < count.
void ZeroFloats(CudaQueue& queue, float* data, int64_t count);

// Writes `count` matrices to `to` as `type`, rounded to nearest even, one matrix after the other, with rows `stride`
// numbers apart.  The padding after a row is not written.
void RoundRows(CudaQueue& queue, int64_t count, const DeviceMatrices& matrices, int64_t stride,
               DType type, void* to);

// Copies values [columns] to every row of `to`.
void FillRows(CudaQueue& queue, const float* values, const DeviceMatrix& to);

// sum[j] = (or +=) the sum over rows of x[row][j].  For j < twin_columns also twin[j].
void SumOverRows(CudaQueue& queue, const DeviceMatrix& x, bool accumulate, float* sum,
                 float* twin = nullptr, int64_t twin_columns = 0);

// Row i of `to` = row tokens[i * apart] of `from`.  If that token is outside [0, from.rows) the row becomes NaN, so
// that the loss becomes NaN and the run reports it.
void TakeRows(CudaQueue& queue, const int32_t* tokens, int64_t apart, const DeviceMatrix& from,
              const DeviceMatrix& to);

// lengths[n] = the length of sentence n of tokens [sentences, steps], which ends at its first `pad` (nn/tokens.h).
void FindLengths(CudaQueue& queue, const int32_t* tokens, int64_t sentences, int64_t steps,
                 int64_t pad, int32_t* lengths);

// Dropout: sets element i of row n to 0 if random_of(n).Bits(i) < ratio * 2^32, else scales it by 1 / (1 - ratio).
// `to` may be `from`; to.rounded is written, too, if it is not null.  random_of is a DT_DEVICE lambda that returns the
// Random of row n by the step's values.  Each GPU thread draws one block of random numbers, four words, for four elements
// of a row.
template <class RandomOf>
void DropRows(CudaQueue& queue, const StepValues* values, double ratio, RandomOf random_of,
              const DeviceMatrix& from, const DeviceMatrix& to) {
  const auto threshold = static_cast<uint32_t>(ratio * 0x1p32);
  const auto scale = static_cast<float>(1 / (1 - ratio));
  const int64_t blocks = (from.columns + 3) / 4;
  const RoundedCopy copy = CopyOf(queue, to);
  ForEach(queue, {"drop rows", {Reads(values, 1), Reads(from), Writes(to), WritesCopy(to)}},
          from.rows * blocks, [=] DT_DEVICE(int64_t at) {
            const int64_t n = at / blocks, block = at % blocks;
            const auto words = random_of(*values, n).Block(static_cast<uint64_t>(block));
            for (int64_t k = 0; k < 4; ++k) {
              const int64_t i = block * 4 + k;
              if (i >= from.columns) return;
              const float scaled = scale * from.data[n * from.stride + i];
              const float kept = words[static_cast<size_t>(k)] < threshold ? 0 : scaled;
              to.data[n * to.stride + i] = kept;
              copy.Store(n * to.stride + i, kept);
            }
          });
}

}  // namespace dtrain
