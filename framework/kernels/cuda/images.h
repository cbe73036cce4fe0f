// Helpers shared by the GPU's image kernels.  Their images are channels last: a matrix with a row for each pixel and a
// column for each channel.
#pragma once

#include <algorithm>

#include "framework/device/buffer.h"
#include "framework/device/cuda/queue.h"
#include "framework/device/tensor.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// Returns the format that image kernels use: channels last for [N, C, H, W], else plain.  With one channel both have
// the same memory layout, so plain is chosen, which needs no reordering.
inline Format ImageFormat(const Shape& image) {
  return image.rank() == 4 && image[1] != 1 ? Format::kChannelsLast : Format::kPlain;
}

// Returns the offer of a kernel with one input image and one output image in that format.
inline KernelOffer OfferImage(const KernelRequest& request) {
  return {{ImageFormat(request.inputs[0])}, {ImageFormat(request.outputs[0])}};
}

// to = from.  Both are [N, C, H, W]; one must be plain, the other channels last.
void ReorderImages(CudaQueue& queue, const Tensor& from, const Tensor& to);

// Convert `count` numbers from fp32 to bf16, rounding to nearest even, and back.
void RoundToBf16(CudaQueue& queue, int64_t count, const float* from, void* to);
void WidenBf16(CudaQueue& queue, int64_t count, const void* from, float* to);

// Describes how SumColumns (column_sums.h) adds up the rows of a matrix, in one kernel.  A block adds up every
// slices()-th group of rows of 32 adjacent columns, so that reads are coalesced, and the last block of these columns
// adds up the slices.  The order of additions depends only on the shape.
class ColumnSums {
 public:
  static constexpr int64_t kTile = 32, kLanes = 8;  // those of ForEachColumn's blocks

  ColumnSums(const Device& device, int64_t rows, int64_t columns)
      : rows_(rows),
        columns_(columns),
        slices_(std::clamp(kThreads / (columns * kLanes), int64_t{1},
                           std::max(rows / kSliceRowsMin, int64_t{1}))),
        finished_(device, static_cast<size_t>(tiles()) * sizeof(unsigned)) {}

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t slices() const { return slices_; }
  int64_t tiles() const { return (columns_ + kTile - 1) / kTile; }
  // Returns the number of partial sums, one per slice and column, for which the caller provides memory.
  int64_t partial_sums() const { return slices_ * columns_; }
  // Returns a counter for each tile.
  unsigned* finished() const { return static_cast<unsigned*>(finished_.data()); }

 private:
  static constexpr int64_t kThreads = 256 * 1024;  // that there should be
  static constexpr int64_t kSliceRowsMin = 64;

  int64_t rows_, columns_, slices_;
  Buffer finished_;
};

// sum = (or += if `accumulate`) the sum of the rows of x, added in double.  `partial` has room for partial_sums().
void SumOverRows(CudaQueue& queue, const ColumnSums& sums, const float* x, double* partial,
                 bool accumulate, float* sum);

}  // namespace dtrain
