// Computes the gradient of the weights.  For one channel and kernel row, the accumulators are T outputs x K kernel
// columns while the loop runs over pixels.  The sixteen lanes are kept as separate sums over all rows and blocks, and
// added up once at the end.
#include "framework/device/cpu/simd.h"
#include "layers/convolution/blocked_loops.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

inline constexpr int64_t kChunkVectors = 320;  // vectors of dy per pass: half of the L1 cache

struct Strip {
  const float* x;   // pixel (first row + ky, 0) of the channel
  const float* dy;  // pixel (first row, 0) of the first output
  float* sums;      // [T][K][16]
  int64_t rows;
};

// Returns the number of pixels of dy that fit in registers beside the accumulators; they share the loads of x.
template <int K, int T>
constexpr int GroupSize() {
  const int room = (kRegisters - 1 - T * K) / T;
  return room < 1 ? 1 : room > 4 ? 4 : room;
}

// Adds the products of U consecutive pixels, the first at x and dy.
template <int K, int T, int U>
DTRAIN_INLINE void AddGroup(const float* x, const float* dy, int64_t plane, Vec (&sum)[T][K]) {
  Vec gradient[U][T];
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) gradient[u][t] = Load(dy + t * plane + u * 16);
  }
#pragma GCC unroll 16
  for (int i = 0; i < K + U - 1; ++i) {
    const Vec pixel = Load(x + i * 16);
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      if (i - u < 0 || i - u >= K) continue;
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[t][i - u] = Fma(pixel, gradient[u][t], sum[t][i - u]);
    }
  }
  ReloadBarrier();
}

template <int K, int T>
void AddStrip(const BlockedConvolution& conv, const Strip& strip) {
  constexpr int U = GroupSize<K, T>();
  Vec sum[T][K];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
    for (int kx = 0; kx < K; ++kx) sum[t][kx] = Load(strip.sums + (t * K + kx) * 16);
  }
  const int64_t width = conv.out_width;
  const int64_t plane = conv.out_height * width * 16;
  for (int64_t r = 0; r < strip.rows; ++r) {
    const float* x = strip.x + r * conv.width * 16;
    const float* dy = strip.dy + r * width * 16;
    int64_t p = 0;
    for (; p + U <= width; p += U) AddGroup<K, T, U>(x + p * 16, dy + p * 16, plane, sum);
    for (; p < width; ++p) AddGroup<K, T, 1>(x + p * 16, dy + p * 16, plane, sum);
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
    for (int kx = 0; kx < K; ++kx) Store(strip.sums + (t * K + kx) * 16, sum[t][kx]);
  }
}

using StripFunction = void (*)(const BlockedConvolution&, const Strip&);

template <int K>
constexpr int MaxOutputs() {
  const int most = kAccumulators / K;
  return most < 6 ? most : 6;
}

template <int K, int T>
StripFunction Pick(int outputs) {
  if constexpr (T > 1) {
    if (outputs < T) return Pick<K, T - 1>(outputs);
  }
  return &AddStrip<K, T>;
}

DTRAIN_INLINE int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
DTRAIN_INLINE int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

}  // namespace

int64_t MaxPartOutputs(int64_t kernel) { return kernel == 5 ? MaxOutputs<5>() : MaxOutputs<3>(); }

void AddWeightSums(const BlockedConvolution& conv, const float* x, const float* dy,
                   const WeightPart& part, float* sums) {
  const int outputs = static_cast<int>(part.outputs);
  const StripFunction add =
      conv.kernel == 5 ? Pick<5, MaxOutputs<5>()>(outputs) : Pick<3, MaxOutputs<3>()>(outputs);
  const int64_t chunk = Max(1, kChunkVectors / (part.outputs * conv.out_width));
  const int64_t strip_sums = part.outputs * conv.kernel * 16;
  for (int64_t row = 0; row < conv.out_height; row += chunk) {
    float* at = sums;
    for (int64_t c = 0; c < conv.channels; ++c) {
      for (int64_t ky = 0; ky < conv.kernel; ++ky, at += strip_sums) {
        for (int lane = 0; lane < 16; lane += kLanes) {
          add(conv,
              {.x = x + (c * conv.height + row + ky) * conv.width * 16 + lane,
               .dy = dy + (part.first_output * conv.out_height + row) * conv.out_width * 16 + lane,
               .sums = at + lane,
               .rows = Min(chunk, conv.out_height - row)});
        }
      }
    }
  }
}

void FinishWeightSums(const BlockedConvolution& conv, const WeightPart& part, const float* sums,
                      bool accumulate, float* dw) {
  const int64_t k = conv.kernel;
  for (int64_t c = 0; c < conv.channels; ++c) {
    for (int64_t ky = 0; ky < k; ++ky) {
      for (int64_t t = 0; t < part.outputs; ++t) {
        float* row = dw + (((part.first_output + t) * conv.channels + c) * k + ky) * k;
        for (int64_t kx = 0; kx < k; ++kx, sums += 16) {
          Vec sum = Load(sums);
          for (int lane = kLanes; lane < 16; lane += kLanes) sum += Load(sums + lane);
          row[kx] = (accumulate ? row[kx] : 0) + SumLanes(sum);
        }
      }
    }
  }
}

void AddPixels(const float* pixels, int64_t count, float* sums) {
  for (int lane = 0; lane < 16; lane += kLanes) {
    Vec sum[4] = {Load(sums + lane)};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      for (int k = 0; k < 4; ++k) sum[k] += Load(pixels + (i + k) * 16 + lane);
    }
    for (; i < count; ++i) sum[0] += Load(pixels + i * 16 + lane);
    Store(sums + lane, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
