// Packs images for the bf16 convolution.
#include "framework/device/cpu/amx_vectors.h"
#include "layers/convolution/bf16_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// Returns sixteen channels of image i at one pixel, or zeros if there is no image i.
DTRAIN_INLINE Floats Channels(const Bf16Pixels& from, const float* x, int64_t i) {
  return i < from.images ? LoadFloats(x + i * from.image_floats) : ZeroFloats();
}

}  // namespace

void Bf16PackRows(const Bf16Pixels& from, const float* x, Bf16* to) {
  // Pack kRun pixels of an image at a time: consecutive pixels of an image are on the same memory page, whereas the
  // same pixel of different images maps to the same cache sets.
  constexpr int64_t kRun = 4;
  const int64_t blocks = from.channels / kBf16Block;
  for (int64_t first = 0; first < from.pixels; first += kRun) {
    const int64_t end = first + kRun < from.pixels ? first + kRun : from.pixels;
    for (int64_t i = 0; i < from.images; ++i) {
      for (int64_t p = first; p < end; ++p) {
        const float* const in = x + i * from.image_floats + p * from.pixel_floats;
        Bf16* const out = to + p * blocks * kBf16Square + i * kBf16Block;
        for (int64_t b = 0; b < blocks; ++b) {
          StoreWords(out + b * kBf16Square, ToBf16(LoadFloats(in + b * kBf16Block),
                                                   LoadFloats(in + b * kBf16Block + kTileLanes)));
        }
      }
    }
  }
}

void Bf16PackPairs(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block, Bf16* to) {
  for (int64_t p = 0; p < from.pixels; ++p) {
    for (int64_t c = 0; c < from.channels; c += kTileLanes) {
      const float* const in = x + p * from.pixel_floats + c;
      Bf16* const out = to + c / kBf16Block * block + p * kBf16Square +
                        c % kBf16Block / kTileLanes * kTileElements;
      for (int64_t j = 0; j < pairs; ++j) {
        StoreWords(out + j * kBf16Block,
                   Pairs(Channels(from, in, 2 * j), Channels(from, in, 2 * j + 1)));
      }
    }
  }
}

void Bf16PackTurned(const Bf16Pixels& from, const float* x, int64_t pairs, int64_t block,
                    Bf16* to) {
  for (int64_t p = 0; p < from.pixels; ++p) {
    for (int64_t c = 0; c < from.channels; c += kTileLanes) {
      const float* const in = x + p * from.pixel_floats + c;
      Bf16* const out = to + c / kBf16Block * block + p * kBf16Square +
                        c % kBf16Block / kTileLanes * kTileElements;
      Words rows[16];
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
        rows[j] = j < pairs ? Pairs(Channels(from, in, 2 * j), Channels(from, in, 2 * j + 1))
                            : ZeroWords();
      }
      Transpose(rows);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) StoreWords(out + i * kBf16Block, rows[i]);
    }
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
