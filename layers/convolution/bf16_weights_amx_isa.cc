// Packs the bf16 convolution's weights from plain OIHW order, and writes their gradient back in it.  The lanes of a
// vector are sixteen taps.
#include "framework/device/cpu/amx_vectors.h"
#include "layers/convolution/bf16_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// Describes the taps from `first` on that fit in one vector.
struct Taps {
  int64_t first;
  int64_t count;
  LaneMask mask;
};

DTRAIN_INLINE Taps TapsFrom(int64_t first, int64_t taps) {
  const int64_t count = taps - first < kTileLanes ? taps - first : kTileLanes;
  return {first, count, static_cast<LaneMask>((1u << count) - 1)};
}

// Loads one output's weights: lane j of vector t is the pair of channels (2 j, 2 j + 1) of tap t.
DTRAIN_INLINE void LoadChannels(const Taps& taps, const float* w, int64_t all, Words (&v)[16]) {
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) {
    v[j] =
        Pairs(LoadFloats(taps.mask, w + 2 * j * all), LoadFloats(taps.mask, w + (2 * j + 1) * all));
  }
  Transpose(v);
}

void PackChannelPairs(const Bf16WeightBlock& block, const Taps& taps, const float* w,
                      const int32_t* place, int64_t tap, Bf16* to) {
  alignas(64) Words by_tap[16][16];  // [tap][output]
  for (int o = 0; o < 16; ++o) {
    Words v[16];
    LoadChannels(taps, w + o * block.channels * block.taps, block.taps, v);
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) by_tap[t][o] = v[t];
  }
  for (int64_t t = 0; t < taps.count; ++t) {
    Words v[16];
#pragma GCC unroll 16
    for (int o = 0; o < 16; ++o) v[o] = by_tap[t][o];
    Transpose(v);
    Bf16* const out = to + place[taps.first + t] * tap;
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) StoreWords(out + j * kBf16Block, v[j]);
  }
}

// Packs pairs of outputs for sixteen channels.
void PackOutputPairs(const Bf16WeightBlock& block, const Taps& taps, const float* w,
                     const int32_t* place, int64_t tap, Bf16* to) {
  const int64_t output = block.channels * block.taps;
  for (int64_t j = 0; j < 16; ++j, w += 2 * output) {
    Words v[16];
#pragma GCC unroll 16
    for (int c = 0; c < 16; ++c) {
      v[c] = Pairs(LoadFloats(taps.mask, w + c * block.taps),
                   LoadFloats(taps.mask, w + c * block.taps + output));
    }
    Transpose(v);
    for (int64_t t = 0; t < taps.count; ++t) {
      StoreWords(to + place[taps.first + t] * tap + j * kBf16Block, v[t]);
    }
  }
}

}  // namespace

void Bf16PackWeights(const Bf16WeightBlock& block, bool turned, const float* w,
                     const int32_t* place, int64_t tap, Bf16* to) {
  w += (block.first_output * block.channels + block.first_channel) * block.taps;
  const int64_t half = kTileLanes * block.taps * (turned ? 1 : block.channels);
  for (int64_t first = 0; first < block.taps; first += kTileLanes) {
    const Taps taps = TapsFrom(first, block.taps);
    for (int64_t h = 0; h < 2; ++h) {
      const float* const from = w + h * half + first;
      Bf16* const tile = to + h * kTileElements;
      turned ? PackOutputPairs(block, taps, from, place, tap, tile)
             : PackChannelPairs(block, taps, from, place, tap, tile);
    }
  }
}

void Bf16WeightGradient(const Bf16WeightBlock& block, const float* sums, bool accumulate,
                        float* dw) {
  constexpr int64_t kTile = kTileLanes * kTileLanes;
  dw += (block.first_output * block.channels + block.first_channel) * block.taps;
  for (int64_t first = 0; first < block.taps; first += kTileLanes) {
    const Taps taps = TapsFrom(first, block.taps);
    for (int64_t o = 0; o < kBf16Block; ++o) {
      for (int64_t half = 0; half < 2; ++half) {
        const float* const from =
            sums + ((first * 2 + o / kTileLanes) * 2 + half) * kTile + o % kTileLanes * kTileLanes;
        Words v[16];
#pragma GCC unroll 16
        for (int t = 0; t < 16; ++t) {
          v[t] = t < taps.count ? LoadWords(from + t * 4 * kTile) : ZeroWords();
        }
        Transpose(v);
        float* to = dw + (o * block.channels + half * kTileLanes) * block.taps + first;
#pragma GCC unroll 16
        for (int c = 0; c < 16; ++c, to += block.taps) {
          Floats sum = AsFloats(v[c]);
          if (accumulate) sum = Add(LoadFloats(taps.mask, to), sum);
          StoreFloats(taps.mask, to, sum);
        }
      }
    }
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
