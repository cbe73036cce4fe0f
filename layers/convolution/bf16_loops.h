// The loops of the bf16 convolution on AMX (framework/device/cpu/amx_tiles.h).  They take any window, stride and pad;
// channels must be multiples of 32.  Images are fp32, channels last; weights are in plain OIHW order.
//
// The rows of a tile are images: a group of up to 32 of them is computed side by side, pixel by pixel, so pads, strides
// and small maps need no special treatment and waste no work.  Factors are rounded to bf16 (to nearest even) while they
// are packed into one of these layouts:
//   rows    [pixel][channel block][32 images][32 channels]              images; the sum is over channels
//   pairs   [channel block][pixel][2][images / 2][16 channels][2]       the sum is over images
//   turned  [channel block][pixel][2][16 channels][32 images]           the other factor of a sum over images
//   weights [output block][tap][channel block][2][16][16 outputs][2]    pairs of channels
// A forward sum runs over channels, then taps (columns before rows).  A sum for the weight gradient runs over images,
// columns, rows, then groups.  Neither threads nor the batch change the order.
#pragma once

#include <cstdint>

namespace dtrain {

using Bf16 = uint16_t;

inline constexpr int64_t kBf16Block = 32;                        // channels per block
inline constexpr int64_t kBf16Images = 32;                       // images per group
inline constexpr int64_t kBf16Square = kBf16Block * kBf16Block;  // numbers of two tiles

// Describes one row of pixels of all images of a group, in an fp32 tensor.
struct Bf16Pixels {
  int64_t images = 0;
  int64_t image_floats = 0;  // from one image to the next
  int64_t pixels = 0;
  int64_t pixel_floats = 0;
  int64_t channels = 0;
};

// The inputs that one output row or column is a sum of, [first, first + count), and the taps of the packed weights that
// belong to them, [tap, tap + count).
struct Bf16Window {
  int32_t first = 0;
  int32_t tap = 0;
  int32_t count = 0;
};

// Describes a block of 32 x 32 channels of the weights [outputs, channels, taps].
struct Bf16WeightBlock {
  int64_t channels = 0;
  int64_t taps = 0;
  int64_t first_output = 0;
  int64_t first_channel = 0;
};

// Holds the arguments for computing one row of outputs, for a group of images and a block of 32 channels.
struct Bf16RowJob {
  int64_t images = 0;
  int64_t columns = 0;
  Bf16Window row;
  const Bf16Window* column = nullptr;  // [columns]
  const Bf16* input = nullptr;         // packed rows in a ring buffer of `ring` rows
  int64_t ring = 0;
  int64_t input_row = 0;  // numbers of a packed row
  int64_t blocks = 0;     // blocks of input channels
  const Bf16* weights = nullptr;
  int64_t kernel = 0;
  const float* bias = nullptr;  // [32] of this block; may be null
  bool relu = false;
  float* output = nullptr;  // first image, column and channel of the block
  int64_t image_floats = 0;
  int64_t pixel_floats = 0;
};

// The arguments for adding some rows of output gradients to the sums of a block's weight gradient, [tap][2 x 2][16
// outputs][16 channels].
struct Bf16WeightJob {
  int64_t pairs = 0;  // pairs of images
  int64_t groups = 1;
  int64_t rows = 0, columns = 0;  // of output gradients, starting at first_row
  int64_t first_row = 0;
  const Bf16* dy = nullptr;  // layout `turned`; starts at first_row
  int64_t dy_group = 0;      // numbers from one group to the next
  const Bf16* x = nullptr;   // layout `pairs`, a ring buffer of `ring` rows
  int64_t x_group = 0;
  int64_t ring = 0;
  int64_t x_rows = 0, x_columns = 0;
  int64_t kernel = 0, stride = 0, pad = 0;
  int64_t first_tap = 0, taps = 0;
  bool fresh = false;  // overwrite the sums instead of adding
  float* sums = nullptr;
};

// The function pointers of one compiled copy of the loops.
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

// isa_amx is compiled for AMX; isa_emulated, which emulates the tiles in memory (amx_tiles.h), is for tests only.
namespace isa_amx {
extern const Bf16Loops kBf16Loops;
}
namespace isa_emulated {
extern const Bf16Loops kBf16Loops;
}

#ifdef DTRAIN_ISA_NS
namespace DTRAIN_ISA_NS {

void Bf16PackRows(const Bf16Pixels& from, const float* x, Bf16* to);

// `block` is the distance from one block of channels to the next, in numbers.  Missing images, up to 2 * pairs, are
// packed as zeros.
void Bf16PackPairs(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block, Bf16* to);
void Bf16PackTurned(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block, Bf16* to);

// Packs tap t of the weights to position place[t]; positions are `tap` numbers apart.  If `turned`, channels and
// outputs are exchanged.
void Bf16PackWeights(const Bf16WeightBlock& block, bool turned, const float* w,
                     const int32_t* place, int64_t tap, Bf16* to);

void Bf16Row(const Bf16RowJob& job);

void Bf16WeightSums(const Bf16WeightJob& job);

// Writes (or adds, if `accumulate`) the gradient of a block of weights to dw, from its sums.
void Bf16WeightGradient(const Bf16WeightBlock& block, const float* sums, bool accumulate,
                        float* dw);

}  // namespace DTRAIN_ISA_NS
#endif
}  // namespace dtrain
