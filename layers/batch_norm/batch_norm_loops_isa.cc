#include "layers/batch_norm/batch_norm_loops.h"

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// This is the number of rows that are added between loading and storing a channel's sums.
constexpr int64_t kRowGroup = 8;

// A Vec is widened to two vectors of kDoubles doubles.
constexpr int kDoubles = kLanes / 2;
typedef double VecDouble __attribute__((vector_size(4 * kLanes)));
typedef double UnalignedVecDouble __attribute__((vector_size(4 * kLanes), aligned(8), may_alias));
struct Wide {
  VecDouble low, high;
};

DTRAIN_INLINE Wide Widen(Vec v) {
#if defined(DTRAIN_ISA_AVX512)
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(v)),
          _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))};
#elif defined(DTRAIN_ISA_AVX2) || defined(DTRAIN_ISA_AVX)
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(v)), _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))};
#else
  return {VecDouble{v[0], v[1]}, VecDouble{v[2], v[3]}};
#endif
}
DTRAIN_INLINE Wide LoadWide(const double* p) {
  return {*reinterpret_cast<const UnalignedVecDouble*>(p),
          *reinterpret_cast<const UnalignedVecDouble*>(p + kDoubles)};
}
DTRAIN_INLINE void StoreWide(double* p, const Wide& v) {
  *reinterpret_cast<UnalignedVecDouble*>(p) = v.low;
  *reinterpret_cast<UnalignedVecDouble*>(p + kDoubles) = v.high;
}
DTRAIN_INLINE double SumLanes(const Wide& v) {
  const VecDouble both = v.low + v.high;
  double sum = 0;
  for (int lane = 0; lane < kDoubles; ++lane) sum += both[lane];
  return sum;
}

// Add() computes first += a and second += a * b.
template <class T>
struct Pair {
  T a, b;
};
DTRAIN_INLINE void Add(const Pair<Vec>& pair, Wide& first, Wide& second) {
  const Wide a = Widen(pair.a), b = Widen(pair.b);
  first.low += a.low;
  first.high += a.high;
  second.low += a.low * b.low;
  second.high += a.high * b.high;
}
DTRAIN_INLINE void Add(const Pair<float>& pair, double& first, double& second) {
  const double a = pair.a;
  first += a;
  second += a * pair.b;
}

// The passes below are written once, for T = Vec and T = float.
template <class T>
DTRAIN_INLINE T At(const float* p) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return *p;
  } else {
    return Load(p);
  }
}
template <class T>
DTRAIN_INLINE T Spread(const float* p) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return *p;
  } else {
    return Set1(*p);
  }
}
DTRAIN_INLINE void Put(float* p, Vec v) { Store(p, v); }
DTRAIN_INLINE void Put(float* p, float v) { *p = v; }
DTRAIN_INLINE void PutPast(float* p, Vec v) { Stream(p, v); }
DTRAIN_INLINE void PutPast(float* p, float v) { *p = v; }

// Returns the factors of channels c, c + 1, ..., one per lane.
template <class T>
DTRAIN_INLINE NormFactors<T> FactorsAt(const ChannelFactors& f, int64_t c) {
  return {At<T>(f.mean + c), At<T>(f.scale + c), At<T>(f.bias + c), At<T>(f.from_bias + c),
          At<T>(f.from_scale + c)};
}
// Returns the factors of channel 0 of `f`, copied to all SIMD lanes.
template <class T>
DTRAIN_INLINE NormFactors<T> FactorsOfFirst(const ChannelFactors& f) {
  return {Spread<T>(f.mean), Spread<T>(f.scale), Spread<T>(f.bias), Spread<T>(f.from_bias),
          Spread<T>(f.from_scale)};
}

template <class T>
DTRAIN_INLINE T Normalised(T x, const NormFactors<T>& f) {
  return (x - f.mean) * f.scale + f.bias;
}
// Returns dy, or 0 where the ReLU's output is 0.
template <bool relu, class T>
DTRAIN_INLINE T Open(T x, T dy, const NormFactors<T>& f) {
  if constexpr (relu) {
    return Normalised(x, f) > 0 ? dy : T{};
  } else {
    return dy;
  }
}

struct SumsPass {
  const float* x;

  template <class T>
  DTRAIN_INLINE Pair<T> operator()(int64_t i, const NormFactors<T>&) const {
    const T v = At<T>(x + i);
    return {v, v};
  }
};

template <bool relu, bool stream>
struct ForwardPass {
  const float* x;
  float* y;

  template <class T>
  DTRAIN_INLINE void operator()(int64_t i, const NormFactors<T>& f) const {
    T v = Normalised(At<T>(x + i), f);
    if constexpr (relu) v = v < 0 ? T{} : v;  // a NaN stays a NaN
    if constexpr (stream) {
      PutPast(y + i, v);
    } else {
      Put(y + i, v);
    }
  }
};

template <bool relu>
struct GradientSumsPass {
  const float *x, *dy;

  template <class T>
  DTRAIN_INLINE Pair<T> operator()(int64_t i, const NormFactors<T>& f) const {
    const T v = At<T>(x + i);
    return {Open<relu>(v, At<T>(dy + i), f), v - f.mean};
  }
};

template <bool relu>
struct BackwardPass {
  const float *x, *dy;
  float* dx;

  template <class T>
  DTRAIN_INLINE void operator()(int64_t i, const NormFactors<T>& f) const {
    const T v = At<T>(x + i);
    const T open = Open<relu>(v, At<T>(dy + i), f);
    Put(dx + i, f.scale * open - f.from_bias - (v - f.mean) * f.from_scale);
  }
};

template <bool relu>
struct FrozenBackwardPass {
  const float *x, *dy;
  float* dx;

  template <class T>
  DTRAIN_INLINE void operator()(int64_t i, const NormFactors<T>& f) const {
    T open = At<T>(dy + i);
    if constexpr (relu) open = Open<relu>(At<T>(x + i), open, f);
    Put(dx + i, f.scale * open);
  }
};

template <class Pass>
void SumPlane(const Pass& pass, int64_t count, const ChannelFactors& factors, double* sums) {
  const NormFactors<Vec> f = FactorsOfFirst<Vec>(factors);
  Wide first = {}, second = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Add(pass(i, f), first, second);
  sums[0] += SumLanes(first);
  sums[1] += SumLanes(second);
  const NormFactors<float> one = FactorsOfFirst<float>(factors);
  for (; i < count; ++i) Add(pass(i, one), sums[0], sums[1]);
}

// Sums `rows` rows (at most kRowGroup) from element `at` on.
template <class Pass>
DTRAIN_INLINE void SumRowGroup(const Pass& pass, int64_t at, int64_t rows, int64_t channels,
                               const ChannelFactors& factors, double* sums) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    const NormFactors<Vec> f = FactorsAt<Vec>(factors, c);
    Wide first = LoadWide(sums + c), second = LoadWide(sums + channels + c);
    for (int64_t r = 0; r < rows; ++r) Add(pass(at + r * channels + c, f), first, second);
    StoreWide(sums + c, first);
    StoreWide(sums + channels + c, second);
  }
  for (; c < channels; ++c) {
    const NormFactors<float> f = FactorsAt<float>(factors, c);
    for (int64_t r = 0; r < rows; ++r) {
      Add(pass(at + r * channels + c, f), sums[c], sums[channels + c]);
    }
  }
}

template <class Pass>
void Sum(const Pass& pass, int64_t rows, int64_t channels, const ChannelFactors& factors,
         double* sums) {
  if (channels == 1) return SumPlane(pass, rows, factors, sums);
  int64_t r = 0;
  for (; r + kRowGroup <= rows; r += kRowGroup) {
    SumRowGroup(pass, r * channels, kRowGroup, channels, factors, sums);
  }
  if (r < rows) SumRowGroup(pass, r * channels, rows - r, channels, factors, sums);
}

template <class Pass>
void ForPlane(const Pass& pass, int64_t count, const ChannelFactors& factors) {
  const NormFactors<Vec> f = FactorsOfFirst<Vec>(factors);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) pass(i, f);
  const NormFactors<float> one = FactorsOfFirst<float>(factors);
  for (; i < count; ++i) pass(i, one);
}

template <class Pass>
void ForEach(const Pass& pass, int64_t rows, int64_t channels, const ChannelFactors& factors) {
  if (channels == 1) return ForPlane(pass, rows, factors);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * channels;
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) pass(at + c, FactorsAt<Vec>(factors, c));
    for (; c < channels; ++c) pass(at + c, FactorsAt<float>(factors, c));
  }
}

}  // namespace

void NormSums(const float* x, int64_t rows, int64_t channels, double* sums) {
  // The pass reads no factors.
  Sum(SumsPass{x}, rows, channels, {x, x, x, x, x}, sums);
}

void NormForward(const float* x, int64_t rows, int64_t channels, const ChannelFactors& factors,
                 bool relu, bool stream, float* y) {
  const bool whole = (channels == 1 || channels % kLanes == 0) &&
                     reinterpret_cast<uintptr_t>(y) % sizeof(Vec) == 0;
  if (!stream || !whole) {
    if (relu) return ForEach(ForwardPass<true, false>{x, y}, rows, channels, factors);
    return ForEach(ForwardPass<false, false>{x, y}, rows, channels, factors);
  }
  if (relu) {
    ForEach(ForwardPass<true, true>{x, y}, rows, channels, factors);
  } else {
    ForEach(ForwardPass<false, true>{x, y}, rows, channels, factors);
  }
  StreamFence();
}

void NormGradientSums(const float* x, const float* dy, int64_t rows, int64_t channels,
                      const ChannelFactors& factors, bool relu, double* sums) {
  if (relu) return Sum(GradientSumsPass<true>{x, dy}, rows, channels, factors, sums);
  Sum(GradientSumsPass<false>{x, dy}, rows, channels, factors, sums);
}

void NormBackward(const float* x, const float* dy, int64_t rows, int64_t channels,
                  const ChannelFactors& factors, bool relu, float* dx) {
  if (relu) return ForEach(BackwardPass<true>{x, dy, dx}, rows, channels, factors);
  ForEach(BackwardPass<false>{x, dy, dx}, rows, channels, factors);
}

void NormBackwardOfFrozen(const float* x, const float* dy, int64_t rows, int64_t channels,
                          const ChannelFactors& factors, bool relu, float* dx) {
  if (relu) return ForEach(FrozenBackwardPass<true>{x, dy, dx}, rows, channels, factors);
  ForEach(FrozenBackwardPass<false>{x, dy, dx}, rows, channels, factors);
}

}  // namespace dtrain::DTRAIN_ISA_NS
