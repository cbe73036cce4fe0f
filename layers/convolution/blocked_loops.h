// The inner loops of the batch_blocked convolution.  It has stride 1 and a square window of 3 or 5; sixteen images are
// interleaved (device/tensor.h); weights are in plain OIHW order.
//
// A vector holds one pixel of sixteen images, and a weight is the same for all of them, so a multiply-add takes a
// vector of pixels and a broadcast weight, and no channel is ever padded.  Each function does independent work on one
// thread; convolution_blocked.cc distributes it.  Pointers to images are to one block of sixteen, [channels, rows,
// columns, 16].
#pragma once

#include <cstdint>

#include "framework/core/isa.h"

namespace dtrain {

// Holds the sizes of a convolution. height and width are the input's, including its padding.
struct BlockedConvolution {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t outputs = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t kernel = 0;
};

// Describes a part of the weight gradient: outputs [first_output, first_output + outputs), all channels.
struct WeightPart {
  int64_t first_output = 0;
  int64_t outputs = 0;
};

// Describes the tile that ForwardRow computes at a time, in pixels of a row and outputs.
struct TileShape {
  int64_t pixels = 0;
  int64_t outputs = 0;
};

// Returns the tile for these sizes.  Call it once, when the kernel is made.
DTRAIN_ISA_DECLARE(TileShape, ChooseTile, (const BlockedConvolution& conv))

// Computes row `row` of y for all outputs: y = x * w + bias, then max(0, .) if `relu`. bias may be null.
DTRAIN_ISA_DECLARE(void, ForwardRow,
                   (const BlockedConvolution& conv, const TileShape& shape, const float* x,
                    const float* w, const float* bias, bool relu, int64_t row, float* y))

// Computes row `row` of the gradient of the padded input for all channels. dx is the address of channel 0's row; the
// next channel's row is `channel_stride` floats further.
DTRAIN_ISA_DECLARE(void, BackwardDataRow,
                   (const BlockedConvolution& conv, const float* dy, const float* w, int64_t row,
                    float* dx, int64_t channel_stride))

// Returns the largest WeightPart::outputs (output channels) for this kernel size.
DTRAIN_ISA_DECLARE(int64_t, MaxPartOutputs, (int64_t kernel))

// Adds one block's part of the weight gradient to `sums`, which has sixteen partial sums for each element of the part.
// It has the size of [outputs, channels, kernel, kernel, 16]; only FinishWeightSums knows the order.
DTRAIN_ISA_DECLARE(void, AddWeightSums,
                   (const BlockedConvolution& conv, const float* x, const float* dy,
                    const WeightPart& part, float* sums))

// Adds up the sixteen lanes of `sums` and writes the part to dw (plain OIHW), or adds it if `accumulate`.
DTRAIN_ISA_DECLARE(void, FinishWeightSums,
                   (const BlockedConvolution& conv, const WeightPart& part, const float* sums,
                    bool accumulate, float* dw))

// Adds the `count` pixels of one channel to sums[16].
DTRAIN_ISA_DECLARE(void, AddPixels, (const float* pixels, int64_t count, float* sums))

}  // namespace dtrain
