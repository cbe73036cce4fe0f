// What kernels of images on the GPU have in common.  Their images are channels last: rows of
// channels, one for each pixel.
#pragma once

#include <algorithm>

#include "framework/device/cuda/queue.h"
#include "framework/device/tensor.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// The format that kernels of images want.  An image of one channel is the same memory in both, and
// plain is what others have it in.
inline Format ImageFormat(const Shape& image) {
  return image.rank() == 4 && image[1] != 1 ? Format::kChannelsLast : Format::kPlain;
}

// One such image in, one out.
inline KernelOffer OfferImage(const KernelRequest& request) {
  return {{ImageFormat(request.inputs[0])}, {ImageFormat(request.outputs[0])}};
}

// to = (or += with `add`) from, both [N, C, H, W] and one of them plain, one channels last.
void ReorderImages(CudaQueue& queue, const Tensor& from, const Tensor& to, bool add = false);

// Numbers of fp32 as bf16, to nearest even; and back.
void RoundToBf16(CudaQueue& queue, int64_t count, const float* from, void* to);
void WidenBf16(CudaQueue& queue, int64_t count, const void* from, float* to);

// How the rows of a matrix are added up, column by column (SumColumns in column_sums.h).  Two passes:
// threads that are neighbours add up columns that are neighbours, each every slices()-th row, so
// that all of them together read the matrix as it lies in memory; then a sum over the slices.  The
// order is one of the shape alone.
class ColumnSums {
 public:
  ColumnSums(int64_t rows, int64_t columns)
      : rows_(rows),
        columns_(columns),
        slices_(std::clamp(kThreads / columns, int64_t{1},
                           std::max(rows / kSliceRowsMin, int64_t{1}))) {}

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t slices() const { return slices_; }
  // Sums of a slice and column, which want memory.
  int64_t partial_sums() const { return slices_ * columns_; }

 private:
  static constexpr int64_t kThreads = 64 * 1024;  // that the first pass keeps busy
  static constexpr int64_t kSliceRowsMin = 16;

  int64_t rows_, columns_, slices_;
};

// sum = (or += with `accumulate`) the rows of x, added in double; `partial` is for partial_sums().
void SumOverRows(CudaQueue& queue, const ColumnSums& sums, const float* x, double* partial,
                 bool accumulate, float* sum);

}  // namespace dtrain
