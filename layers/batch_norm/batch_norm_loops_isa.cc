#include "layers/batch_norm/batch_norm_loops.h"

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {
namespace {

// Values that are summed in float before they are added up in double.
constexpr int64_t kPlaneBlock = 64 * kLanes;
constexpr int64_t kRowBlock = 64;

DTRAIN_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The lanes of the factors from channel c on, or a plane's in every lane.
struct VecFactors {
  Vec mean, scale, bias, from_bias, from_scale;
};
DTRAIN_INLINE VecFactors FactorsOf(const PlaneFactors& f) {
  return {Set1(f.mean), Set1(f.scale), Set1(f.bias), Set1(f.from_bias), Set1(f.from_scale)};
}
DTRAIN_INLINE PlaneFactors FactorsAt(const RowFactors& f, int64_t c) {
  const bool backward = f.from_bias != nullptr;
  return {f.mean[c], f.scale[c], f.bias[c], backward ? f.from_bias[c] : 0,
          backward ? f.from_scale[c] : 0};
}

// T: Vec or float, F: VecFactors or PlaneFactors.
template <class T, class F>
DTRAIN_INLINE T Normalised(T x, const F& f) {
  return (x - f.mean) * f.scale + f.bias;
}
template <class T, class F>
DTRAIN_INLINE T Open(T x, T dy, const F& f, bool relu) {
  return relu ? (Normalised(x, f) > 0 ? dy : T{}) : dy;
}
template <class T, class F>
DTRAIN_INLINE T InputGradient(T x, T dy, const F& f, bool relu) {
  return f.scale * Open(x, dy, f, relu) - f.from_bias - (x - f.mean) * f.from_scale;
}
DTRAIN_INLINE float ReluOf(float y) { return y < 0 ? 0 : y; }

DTRAIN_INLINE void AddLanes(Vec v, double* sums) {
  for (int lane = 0; lane < kLanes; ++lane) sums[lane] += v[lane];
}

// Sums of two values a place, over the places of a plane.
template <class VecPair, class ScalarPair>
DTRAIN_INLINE void SumPlane(int64_t count, const VecPair& vectors, const ScalarPair& scalars,
                            double* sums) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t begin = 0; begin < whole; begin += kPlaneBlock) {
    const int64_t end = Smaller(begin + kPlaneBlock, whole);
    Vec first = Zero(), second = Zero();
    for (int64_t i = begin; i < end; i += kLanes) vectors(i, first, second);
    sums[0] += SumLanes(first);
    sums[1] += SumLanes(second);
  }
  for (int64_t i = whole; i < count; ++i) scalars(i, sums[0], sums[1]);
}

// The same over the rows, for every channel.
template <class VecPair, class ScalarPair>
DTRAIN_INLINE void SumRows(int64_t rows, int64_t channels, const VecPair& vectors,
                           const ScalarPair& scalars, double* sums) {
  const int64_t whole = channels / kLanes * kLanes;
  for (int64_t begin = 0; begin < rows; begin += kRowBlock) {
    const int64_t end = Smaller(begin + kRowBlock, rows);
    for (int64_t c = 0; c < whole; c += kLanes) {
      Vec first = Zero(), second = Zero();
      for (int64_t r = begin; r < end; ++r) vectors(r, c, first, second);
      AddLanes(first, sums + c);
      AddLanes(second, sums + channels + c);
    }
    for (int64_t c = whole; c < channels; ++c) {
      for (int64_t r = begin; r < end; ++r) scalars(r, c, sums[c], sums[channels + c]);
    }
  }
}

}  // namespace

void PlaneSums(const float* x, int64_t count, float pivot, double* sums) {
  const Vec pivots = Set1(pivot);
  SumPlane(
      count,
      [&](int64_t i, Vec& sum, Vec& squares) {
        const Vec d = Load(x + i) - pivots;
        sum += d;
        squares = Fma(d, d, squares);
      },
      [&](int64_t i, double& sum, double& squares) {
        const double d = static_cast<double>(x[i]) - pivot;
        sum += d;
        squares += d * d;
      },
      sums);
}

void RowSums(const float* x, int64_t rows, int64_t channels, const float* pivot, double* sums) {
  SumRows(
      rows, channels,
      [&](int64_t r, int64_t c, Vec& sum, Vec& squares) {
        const Vec d = Load(x + r * channels + c) - Load(pivot + c);
        sum += d;
        squares = Fma(d, d, squares);
      },
      [&](int64_t r, int64_t c, double& sum, double& squares) {
        const double d = static_cast<double>(x[r * channels + c]) - pivot[c];
        sum += d;
        squares += d * d;
      },
      sums);
}

void PlaneNormalise(const float* x, int64_t count, const PlaneFactors& factors, bool relu,
                    float* y) {
  const VecFactors f = FactorsOf(factors);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec v = Normalised(Load(x + i), f);
    Store(y + i, relu ? Relu(v) : v);
  }
  for (; i < count; ++i) {
    const float v = Normalised(x[i], factors);
    y[i] = relu ? ReluOf(v) : v;
  }
}

void RowNormalise(const float* x, int64_t rows, int64_t channels, const RowFactors& factors,
                  bool relu, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) {
      const Vec v = (Load(x + c) - Load(factors.mean + c)) * Load(factors.scale + c) +
                    Load(factors.bias + c);
      Store(y + c, relu ? Relu(v) : v);
    }
    for (; c < channels; ++c) {
      const float v = (x[c] - factors.mean[c]) * factors.scale[c] + factors.bias[c];
      y[c] = relu ? ReluOf(v) : v;
    }
  }
}

void PlaneGradientSums(const float* x, const float* dy, int64_t count, const PlaneFactors& factors,
                       bool relu, double* sums) {
  const VecFactors f = FactorsOf(factors);
  SumPlane(
      count,
      [&](int64_t i, Vec& sum, Vec& products) {
        const Vec v = Load(x + i), g = Open(v, Load(dy + i), f, relu);
        sum += g;
        products = Fma(g, v - f.mean, products);
      },
      [&](int64_t i, double& sum, double& products) {
        const float g = Open(x[i], dy[i], factors, relu);
        sum += g;
        products += static_cast<double>(g) * (x[i] - factors.mean);
      },
      sums);
}

void RowGradientSums(const float* x, const float* dy, int64_t rows, int64_t channels,
                     const RowFactors& factors, bool relu, double* sums) {
  SumRows(
      rows, channels,
      [&](int64_t r, int64_t c, Vec& sum, Vec& products) {
        const VecFactors f = {Load(factors.mean + c), Load(factors.scale + c),
                              Load(factors.bias + c), Zero(), Zero()};
        const int64_t i = r * channels + c;
        const Vec v = Load(x + i), g = Open(v, Load(dy + i), f, relu);
        sum += g;
        products = Fma(g, v - f.mean, products);
      },
      [&](int64_t r, int64_t c, double& sum, double& products) {
        const int64_t i = r * channels + c;
        const float g = Open(x[i], dy[i], FactorsAt(factors, c), relu);
        sum += g;
        products += static_cast<double>(g) * (x[i] - factors.mean[c]);
      },
      sums);
}

void PlaneGradient(const float* x, const float* dy, int64_t count, const PlaneFactors& factors,
                   bool relu, float* dx) {
  const VecFactors f = FactorsOf(factors);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Store(dx + i, InputGradient(Load(x + i), Load(dy + i), f, relu));
  }
  for (; i < count; ++i) dx[i] = InputGradient(x[i], dy[i], factors, relu);
}

void RowGradient(const float* x, const float* dy, int64_t rows, int64_t channels,
                 const RowFactors& factors, bool relu, float* dx) {
  for (int64_t r = 0; r < rows; ++r, x += channels, dy += channels, dx += channels) {
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) {
      const VecFactors f = {Load(factors.mean + c), Load(factors.scale + c),
                            Load(factors.bias + c), Load(factors.from_bias + c),
                            Load(factors.from_scale + c)};
      Store(dx + c, InputGradient(Load(x + c), Load(dy + c), f, relu));
    }
    for (; c < channels; ++c) dx[c] = InputGradient(x[c], dy[c], FactorsAt(factors, c), relu);
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
