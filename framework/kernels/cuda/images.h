// Helpers shared by the GPU's image kernels.  Images are channels last, as tensor cores require, or plain, as cuDNN's exact
// engines for fp32 do (layers/convolution/convolution_cuda.cc); other layers take them as they come.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/device/buffer.h"
#include "framework/device/cuda/queue.h"
#include "framework/device/device_code.h"
#include "framework/device/tensor.h"
#include "framework/nn/kernel.h"

namespace dtrain {

// Returns `wanted` for images [N, C, H, W], else plain.  With one channel or one pixel both formats have the same memory
// layout, so plain is chosen, which needs no reordering.
inline Format ImageFormat(const Shape& image, Format wanted = Format::kChannelsLast) {
  const bool turned = image.rank() == 4 && image[1] != 1 && image.CountFrom(2) != 1;
  return turned ? wanted : Format::kPlain;
}

// Returns the offer of a kernel with input images and one output image in that format and of that type.
inline KernelOffer OfferImages(const KernelRequest& request, Format format, DType type) {
  const Form input(ImageFormat(request.inputs[0], format), type);
  return {std::vector<Form>(request.inputs.size(), input),
          {Form(ImageFormat(request.outputs[0], format), type)}};
}

// Returns that of a kernel that takes the form of its input.
inline KernelOffer FollowImages(const KernelRequest& request) {
  return OfferImages(request, request.available[0].format, request.available[0].dtype);
}

// Describes where the values of a channel are: element i belongs to channel ChannelOf(i), and At(row, c) is element `row`
// of channel c.
struct ChannelRows {
  int64_t rows;     // values of a channel: the pixels of all images
  int64_t columns;  // channels
  // The values of a channel that follow each other in memory: all of an image if it is plain, 1 if channels are last.
  int64_t pixels = 1;

  bool plain() const { return pixels > 1; }
  DT_DEVICE int64_t ChannelOf(int64_t i) const {
    // A GPU has no instruction that divides; 64 bits take several times as long.
    if (i <= INT32_MAX) {
      return static_cast<uint32_t>(i) / static_cast<uint32_t>(pixels) %
             static_cast<uint32_t>(columns);
    }
    return i / pixels % columns;
  }
  DT_DEVICE int64_t At(int64_t row, int64_t c) const {
    const int64_t image = row <= INT32_MAX
                              ? static_cast<uint32_t>(row) / static_cast<uint32_t>(pixels)
                              : row / pixels;
    return (image * columns + c) * pixels + row - image * pixels;
  }
};

// Returns that of images [N, C, ...] in a format.
inline ChannelRows ChannelsOf(const Shape& images, Format format) {
  const int64_t channels = images[1];
  return {images.count() / channels, channels,
          format == Format::kPlain && images.rank() > 2 ? images.CountFrom(2) : 1};
}

// to = from, in the form of `to`: images [N, C, H, W] that are plain or channels last, or tensors of one format.
void Reorder(CudaQueue& queue, const Tensor& from, const Tensor& to);

// Returns the number of elements of a size that fill 16 bytes, which is what a thread reads at once where it can.
constexpr int ElementsOfPack(size_t bytes) { return static_cast<int>(16 / bytes); }

// Describes how the rows of a matrix are added up in one kernel, by SumChannels (channel_loops.h) in packs of elements, or
// by SumColumns (column_sums.h), one element at a time.  A block adds up every slices()-th group of rows of some adjacent
// columns, of plain images those of one channel, so that reads are coalesced, and the last block of these columns adds up
// the slices.  The order of additions depends only on the shape, the format and the width of a pack.
class ColumnSums {
 public:
  static constexpr int64_t kTile = 32, kLanes = 8;  // packs and rows of a block, at most

  ColumnSums(const Device& device, const ChannelRows& of, int pack = 1)
      : of_(of),
        slices_(std::clamp(Blocks(pack) / TilesOf(of.columns % pack == 0 ? pack : 1), int64_t{1},
                           std::max(of.rows / SliceRowsMin(of), int64_t{1}))),
        finished_(device, static_cast<size_t>(tiles()) * sizeof(unsigned)) {}

  const ChannelRows& of() const { return of_; }
  int64_t rows() const { return of_.rows; }
  int64_t columns() const { return of_.columns; }
  int64_t slices() const { return slices_; }
  int64_t tiles() const { return TilesOf(1); }
  // Returns the number of blocks that each have some of the columns, if a pack has `pack` elements.
  int64_t TilesOf(int64_t pack) const {
    return of_.plain() ? of_.columns : (of_.columns / pack + kTile - 1) / kTile;
  }
  // Returns the number of partial sums, one per slice and column, for which the caller provides memory.
  int64_t partial_sums() const { return slices_ * of_.columns; }
  // Returns a counter for each tile.
  unsigned* finished() const { return static_cast<unsigned*>(finished_.data()); }

 private:
  // Returns how many there should be: two for each multiprocessor of an H200 where each thread has several loads under way.
  static int64_t Blocks(int pack) { return pack > 1 ? 264 : 1024; }
  // A whole block has the rows of a plain image.
  static int64_t SliceRowsMin(const ChannelRows& of) { return of.plain() ? 2048 : 64; }

  ChannelRows of_;
  int64_t slices_;
  Buffer finished_;
};

// sum = (or += if `accumulate`) each channel's sum of x, added in double.  `sum` is in fp32 or x's type; `partial` has room
// for partial_sums().
void SumOverRows(CudaQueue& queue, const ColumnSums& sums, const Tensor& x, double* partial,
                 bool accumulate, const Tensor& sum);

// Adds bias[c] (null: nothing) to channel c of y, then takes max(0, y) if `relu`; NaN stays NaN.
void AddBias(CudaQueue& queue, const Tensor& y, const ChannelRows& of, const float* bias,
             bool relu);

// Computes the backward pass of a fused ReLU: dy = 0 where y is 0.
void MaskGradient(CudaQueue& queue, const Tensor& y, const Tensor& dy);

}  // namespace dtrain
