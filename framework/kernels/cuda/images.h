// Helpers shared by the GPU's image kernels.  Their images are channels last: a matrix with a row for each pixel and a
// column for each channel.
#pragma once

#include <algorithm>

#include "framework/device/buffer.h"
#include "framework/device/cuda/queue.h"
#include "framework/device/tensor.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// Returns the format that image kernels use: channels last for [N, C, H, W], else plain.  With one channel or one pixel
// both have the same memory layout, so plain is chosen, which needs no reordering.
inline Format ImageFormat(const Shape& image) {
  const bool turned = image.rank() == 4 && image[1] != 1 && image.CountFrom(2) != 1;
  return turned ? Format::kChannelsLast : Format::kPlain;
}

// Returns the offer of a kernel with input images and one output image in that format and of that type.
inline KernelOffer OfferImages(const KernelRequest& request, DType type) {
  const Form input(ImageFormat(request.inputs[0]), type);
  return {std::vector<Form>(request.inputs.size(), input),
          {Form(ImageFormat(request.outputs[0]), type)}};
}

// Returns that of a kernel that leaves the type of its input as it is.
inline KernelOffer OfferImages(const KernelRequest& request) {
  return OfferImages(request, request.available[0].dtype);
}

// to = from, in the form of `to`: images [N, C, H, W] that are plain or channels last, or tensors of one format.
void Reorder(CudaQueue& queue, const Tensor& from, const Tensor& to);

// Returns the number of elements of a size that fill 16 bytes, which is what a thread reads at once where it can.
constexpr int ElementsOfPack(size_t bytes) { return static_cast<int>(16 / bytes); }

// Describes how the rows of a matrix are added up in one kernel, by SumChannels (channel_loops.h) in packs of elements, or
// by SumColumns (column_sums.h), one element at a time.  A block adds up every slices()-th group of rows of some adjacent
// columns, so that reads are coalesced, and the last block of these columns adds up the slices.  The order of additions
// depends only on the shape and the width of a pack.
class ColumnSums {
 public:
  static constexpr int64_t kTile = 32, kLanes = 8;  // packs and rows of a block, at most

  ColumnSums(const Device& device, int64_t rows, int64_t columns, int pack = 1)
      : rows_(rows),
        columns_(columns),
        slices_(std::clamp(Blocks(pack) / TilesOf(columns % pack == 0 ? pack : 1), int64_t{1},
                           std::max(rows / kSliceRowsMin, int64_t{1}))),
        finished_(device, static_cast<size_t>(tiles()) * sizeof(unsigned)) {}

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t slices() const { return slices_; }
  int64_t tiles() const { return TilesOf(1); }
  // Returns the number of blocks that each have some of the columns, if a pack has `pack` elements.
  int64_t TilesOf(int64_t pack) const { return (columns_ / pack + kTile - 1) / kTile; }
  // Returns the number of partial sums, one per slice and column, for which the caller provides memory.
  int64_t partial_sums() const { return slices_ * columns_; }
  // Returns a counter for each tile.
  unsigned* finished() const { return static_cast<unsigned*>(finished_.data()); }

 private:
  // Returns how many there should be: two for each multiprocessor of an H200 where each thread has several loads under way.
  static int64_t Blocks(int pack) { return pack > 1 ? 264 : 1024; }
  static constexpr int64_t kSliceRowsMin = 64;

  int64_t rows_, columns_, slices_;
  Buffer finished_;
};

// sum = (or += if `accumulate`) the sum of the rows of x, added in double.  `partial` has room for partial_sums().
void SumOverRows(CudaQueue& queue, const ColumnSums& sums, const Tensor& x, double* partial,
                 bool accumulate, float* sum);

// Adds bias[c] (null: nothing) to channel c of y, whose `channels` are last in memory, then takes max(0, y) if `relu`; NaN
// stays NaN.
void AddBias(CudaQueue& queue, const Tensor& y, int64_t channels, const float* bias, bool relu);

// Computes the backward pass of a fused ReLU: dy = 0 where y is 0.
void MaskGradient(CudaQueue& queue, const Tensor& y, const Tensor& dy);

}  // namespace dtrain
