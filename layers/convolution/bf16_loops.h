// The loops of the bf16 convolution on AMX (framework/device/cpu/amx_tiles.h): any window, stride
// and pad, channels in multiples of 32, images channels last in fp32, weights in plain OIHW order.
//
// The rows of a tile are images: a group of up to 32 of them is computed side by side, pixel by
// pixel, so pads, strides and small maps need no care and waste nothing.  What is multiplied is
// rounded to bf16 (to nearest even) while it is packed:
//   rows    [pixel][channel block][32 images][32 channels]              images of a forward product
//   pairs   [channel block][pixel][2][images / 2][16 channels][2]       the sum is over images
//   turned  [channel block][pixel][2][16 channels][32 images]           the other factor of it
//   weights [output block][tap][channel block][2][16][16 outputs][2]    pairs of channels
// A sum runs over channels, then taps (columns before rows); a sum over images and pixels over
// images, columns, rows, then groups.  Neither threads nor the batch change its order.
#pragma once

#include <cstdint>

namespace dtrain {

using Bf16 = uint16_t;

inline constexpr int64_t kBf16Block = 32;                        // channels of a block
inline constexpr int64_t kBf16Images = 32;                       // images of a group
inline constexpr int64_t kBf16Square = kBf16Block * kBf16Block;  // numbers of two tiles

// A row of pixels of the images of a group, in an fp32 tensor.
struct Bf16Pixels {
  int64_t images = 0;
  int64_t image_floats = 0;  // from one image to the next
  int64_t pixels = 0;
  int64_t pixel_floats = 0;
  int64_t channels = 0;
};

// Which inputs one output row or column is a sum of, and with which taps of the packed weights:
// inputs [first, first + count), taps [tap, tap + count).
struct Bf16Window {
  int32_t first = 0;
  int32_t tap = 0;
  int32_t count = 0;
};

// A block of 32 x 32 channels of the weights [outputs, channels, taps].
struct Bf16WeightBlock {
  int64_t channels = 0;
  int64_t taps = 0;
  int64_t first_output = 0;
  int64_t first_channel = 0;
};

// One row of outputs, for a group of images and a block of 32 channels.
struct Bf16RowJob {
  int64_t images = 0;
  int64_t columns = 0;
  Bf16Window row;
  const Bf16Window* column = nullptr;  // one a column
  const Bf16* input = nullptr;         // packed rows, `ring` of them in turn
  int64_t ring = 0;
  int64_t input_row = 0;  // numbers of a packed row
  int64_t blocks = 0;     // of input channels
  const Bf16* weights = nullptr;
  int64_t kernel = 0;
  const float* bias = nullptr;  // of the block's channels; may be null
  bool relu = false;
  float* output = nullptr;  // first image, first column, first channel of the block
  int64_t image_floats = 0;
  int64_t pixel_floats = 0;
};

// Sums of the gradient of a block of weights, [tap][2 x 2][16 outputs][16 channels], over some rows
// of output gradients.
struct Bf16WeightJob {
  int64_t pairs = 0;  // of images
  int64_t groups = 1;
  int64_t rows = 0, columns = 0;  // of output gradients, from first_row on
  int64_t first_row = 0;
  const Bf16* dy = nullptr;  // turned; its first row is first_row
  int64_t dy_group = 0;      // numbers from one group to the next
  const Bf16* x = nullptr;   // pairs, `ring` rows in turn
  int64_t x_group = 0;
  int64_t ring = 0;
  int64_t x_rows = 0, x_columns = 0;
  int64_t kernel = 0, stride = 0, pad = 0;
  int64_t first_tap = 0, taps = 0;
  bool fresh = false;  // the sums begin here
  float* sums = nullptr;
};

// The loops, as one copy of them is called.
struct Bf16Loops {
  void (*pack_rows)(const Bf16Pixels& from, const float* x, Bf16* to);
  void (*pack_pairs)(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block,
                     Bf16* to);
  void (*pack_turned)(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block,
                      Bf16* to);
  void (*pack_weights)(const Bf16WeightBlock& block, bool turned, const float* w,
                       const int32_t* place, int64_t tap, Bf16* to);
  void (*row)(const Bf16RowJob& job);
  void (*weight_sums)(const Bf16WeightJob& job);
  void (*weight_gradient)(const Bf16WeightBlock& block, const float* sums, bool accumulate,
                          float* dw);
};

// Compiled for AMX, and for the tests alone with tiles in memory (amx_tiles.h).
namespace isa_amx {
extern const Bf16Loops kBf16Loops;
}
namespace isa_emulated {
extern const Bf16Loops kBf16Loops;
}

#ifdef DTRAIN_ISA_NS
namespace DTRAIN_ISA_NS {

void Bf16PackRows(const Bf16Pixels& from, const float* x, Bf16* to);

// `block`: numbers from one block of channels to the next.  Images up to 2 pairs are zeros.
void Bf16PackPairs(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block, Bf16* to);
void Bf16PackTurned(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block, Bf16* to);

// Tap t of the weights goes to place[t], places are `tap` numbers apart.  turned: channels take the
// part of outputs.
void Bf16PackWeights(const Bf16WeightBlock& block, bool turned, const float* w,
                     const int32_t* place, int64_t tap, Bf16* to);

void Bf16Row(const Bf16RowJob& job);

void Bf16WeightSums(const Bf16WeightJob& job);

// The gradient of a block of weights from its sums.
void Bf16WeightGradient(const Bf16WeightBlock& block, const float* sums, bool accumulate,
                        float* dw);

}  // namespace DTRAIN_ISA_NS
#endif
}  // namespace dtrain
