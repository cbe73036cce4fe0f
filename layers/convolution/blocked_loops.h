// The hot loops of the batch_blocked convolution: stride 1, square kernel of width 3 or 5, images
// interleaved by sixteen (device/tensor.h), weights in plain OIHW order.
//
// One vector holds one pixel of sixteen images and a weight is the same for all of them, so a
// multiply-add takes a vector of pixels and a broadcast weight: no channel is ever padded.  Each
// function does one independent piece of work on one thread; convolution_blocked.cc hands the
// pieces out.  Pointers to images are to one block of sixteen, [channels, rows, columns, 16].
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Sizes of one convolution.  The input includes its padding.
struct BlockedConvolution {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t outputs = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t kernel = 0;
};

// A piece of the weight gradient: outputs [first_output, +outputs), all channels.
struct WeightPiece {
  int64_t first_output = 0;
  int64_t outputs = 0;
};

// What ForwardRow computes at a time: pixels of a row x outputs.
struct TileShape {
  int64_t pixels = 0;
  int64_t outputs = 0;
};

// The tile for these sizes; to be asked once.
DTRAIN_ISA_DECLARE(TileShape, ChooseTile, (const BlockedConvolution& conv))

// Row `row` of y, all outputs: y = x * w + bias, then max(0, .) if `relu`.  bias may be null.
DTRAIN_ISA_DECLARE(void, ForwardRow,
                   (const BlockedConvolution& conv, const TileShape& shape, const float* x,
                    const float* w, const float* bias, bool relu, int64_t row, float* y))

// Row `row` of the gradient of the padded input, all channels.  dx: where the row of channel 0
// goes; the next channel's is `channel_stride` floats further.
DTRAIN_ISA_DECLARE(void, BackwardDataRow,
                   (const BlockedConvolution& conv, const float* dy, const float* w, int64_t row,
                    float* dx, int64_t channel_stride))

// At most so many outputs may be in a WeightPiece.
DTRAIN_ISA_DECLARE(int64_t, MaxPieceOutputs, (int64_t kernel))

// Adds one block's part of the weight gradient to `sums`: a vector of sixteen partial sums for each
// element of the piece, [outputs, channels, kernel, kernel, 16] in an order of its own.
DTRAIN_ISA_DECLARE(void, AddWeightSums,
                   (const BlockedConvolution& conv, const float* x, const float* dy,
                    const WeightPiece& piece, float* sums))

// Adds up the sixteen lanes of `sums` and puts the piece into (or adds it to) dw, plain OIHW.
DTRAIN_ISA_DECLARE(void, FinishWeightSums,
                   (const BlockedConvolution& conv, const WeightPiece& piece, const float* sums,
                    bool accumulate, float* dw))

// sums[16] += the pixels of one channel.
DTRAIN_ISA_DECLARE(void, AddPixels, (const float* pixels, int64_t count, float* sums))

}  // namespace dtrain
