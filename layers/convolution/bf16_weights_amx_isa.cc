// The bf16 convolution's weights, from plain OIHW order and their gradient back into it.  Sixteen
// taps at a time are the lanes of a vector.
#include "layers/convolution/bf16_loops.h"
#include "layers/convolution/bf16_transpose.h"

namespace dtrain::isa_amx {
namespace {

// The taps from `first` on that one vector takes.
struct Taps {
  int64_t first;
  int64_t count;
  __mmask16 mask;
};

DTRAIN_INLINE Taps TapsFrom(int64_t first, int64_t taps) {
  const int64_t count = taps - first < kTileLanes ? taps - first : kTileLanes;
  return {first, count, static_cast<__mmask16>((1u << count) - 1)};
}

// Vector t: pairs of channels (2 j, 2 j + 1), one a lane, of tap t of one output.
DTRAIN_INLINE void LoadChannels(const Taps& taps, const float* w, int64_t all, __m512i (&v)[16]) {
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) {
    v[j] = Pairs(_mm512_maskz_loadu_ps(taps.mask, w + 2 * j * all),
                 _mm512_maskz_loadu_ps(taps.mask, w + (2 * j + 1) * all));
  }
  Transpose(v);
}

void PackChannelPairs(const Bf16WeightBlock& block, const Taps& taps, const float* w,
                      const int32_t* place, int64_t tap, Bf16* to) {
  alignas(64) __m512i by_tap[16][16];  // of an output
  for (int o = 0; o < 16; ++o) {
    __m512i v[16];
    LoadChannels(taps, w + o * block.channels * block.taps, block.taps, v);
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) by_tap[t][o] = v[t];
  }
  for (int64_t t = 0; t < taps.count; ++t) {
    __m512i v[16];
#pragma GCC unroll 16
    for (int o = 0; o < 16; ++o) v[o] = by_tap[t][o];
    Transpose(v);
    Bf16* const out = to + place[taps.first + t] * tap;
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) _mm512_storeu_si512(out + j * kBf16Block, v[j]);
  }
}

// Pairs of outputs, for sixteen channels.
void PackOutputPairs(const Bf16WeightBlock& block, const Taps& taps, const float* w,
                     const int32_t* place, int64_t tap, Bf16* to) {
  const int64_t output = block.channels * block.taps;
  for (int64_t j = 0; j < 16; ++j, w += 2 * output) {
    __m512i v[16];
#pragma GCC unroll 16
    for (int c = 0; c < 16; ++c) {
      v[c] = Pairs(_mm512_maskz_loadu_ps(taps.mask, w + c * block.taps),
                   _mm512_maskz_loadu_ps(taps.mask, w + c * block.taps + output));
    }
    Transpose(v);
    for (int64_t t = 0; t < taps.count; ++t) {
      _mm512_storeu_si512(to + place[taps.first + t] * tap + j * kBf16Block, v[t]);
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
        __m512i v[16];
#pragma GCC unroll 16
        for (int t = 0; t < 16; ++t) {
          v[t] = t < taps.count ? _mm512_loadu_si512(from + t * 4 * kTile) : _mm512_setzero_si512();
        }
        Transpose(v);
        float* to = dw + (o * block.channels + half * kTileLanes) * block.taps + first;
#pragma GCC unroll 16
        for (int c = 0; c < 16; ++c, to += block.taps) {
          __m512 sum = _mm512_castsi512_ps(v[c]);
          if (accumulate) sum = _mm512_maskz_loadu_ps(taps.mask, to) + sum;
          _mm512_mask_storeu_ps(to, taps.mask, sum);
        }
      }
    }
  }
}

}  // namespace dtrain::isa_amx
