// The six one-dimensional transforms of F(4, 3) and F(2, 3) (Lavin and Gray 2015, sections 4.1 and
// 4.3: the points 0, 1, -1, 2, -2, infinity), each as out = T in on vectors `step` apart, and Both,
// which applies one to the rows and columns of a square.  For sources that end in _isa.cc.
#pragma once

#include "framework/device/cpu/simd.h"

namespace dtrain::DTRAIN_ISA_NS {

template <int M>
struct Winograd;

template <>
struct Winograd<4> {
  struct Input {  // B^T
    static constexpr int kIn = 6, kOut = 6;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec x1 = x[from], x2 = x[2 * from], x3 = x[3 * from], x4 = x[4 * from];
      const Vec even = Fma(Set1(-4), x2, x4), odd = Fma(Set1(-4), x1, x3);
      const Vec near = x4 - x2, far = (x3 - x1) * Set1(2);
      y[0] = Fma(Set1(4), x[0], Fma(Set1(-5), x2, x4));
      y[to] = even + odd;
      y[2 * to] = even - odd;
      y[3 * to] = near + far;
      y[4 * to] = near - far;
      y[5 * to] = Fma(Set1(4), x1, Fma(Set1(-5), x3, x[5 * from]));
    }
  };
  struct Output {  // A^T
    static constexpr int kIn = 6, kOut = 4;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec s = x[from] + x[2 * from], d = x[from] - x[2 * from];
      const Vec s2 = x[3 * from] + x[4 * from], d2 = x[3 * from] - x[4 * from];
      y[0] = x[0] + s + s2;
      y[to] = Fma(Set1(2), d2, d);
      y[2 * to] = Fma(Set1(4), s2, s);
      y[3 * to] = Fma(Set1(8), d2, d) + x[5 * from];
    }
  };
  struct OutputGradient {  // A
    static constexpr int kIn = 4, kOut = 6;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec x1 = x[from], x3 = x[3 * from];
      const Vec even = x[0] + x[2 * from], odd = x1 + x3;
      const Vec even2 = Fma(Set1(4), x[2 * from], x[0]), odd2 = Fma(Set1(8), x3, x1 * Set1(2));
      y[0] = x[0];
      y[to] = even + odd;
      y[2 * to] = even - odd;
      y[3 * to] = even2 + odd2;
      y[4 * to] = even2 - odd2;
      y[5 * to] = x3;
    }
  };
  struct Weights {  // G
    static constexpr int kIn = 3, kOut = 6;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec x1 = x[from], x2 = x[2 * from];
      const Vec even = (x[0] + x2) * Set1(-1.0f / 6), odd = x1 * Set1(-1.0f / 6);
      const Vec even2 = Fma(Set1(1.0f / 24), x[0], x2 * Set1(1.0f / 6)),
                odd2 = x1 * Set1(1.0f / 12);
      y[0] = x[0] * Set1(0.25f);
      y[to] = even + odd;
      y[2 * to] = even - odd;
      y[3 * to] = even2 + odd2;
      y[4 * to] = even2 - odd2;
      y[5 * to] = x2;
    }
  };
  struct WeightGradient {  // G^T
    static constexpr int kIn = 6, kOut = 3;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec s = (x[from] + x[2 * from]) * Set1(-1.0f / 6);
      const Vec d = (x[2 * from] - x[from]) * Set1(1.0f / 6);
      const Vec s2 = x[3 * from] + x[4 * from], d2 = x[3 * from] - x[4 * from];
      y[0] = Fma(Set1(0.25f), x[0], Fma(Set1(1.0f / 24), s2, s));
      y[to] = Fma(Set1(1.0f / 12), d2, d);
      y[2 * to] = Fma(Set1(1.0f / 6), s2, s) + x[5 * from];
    }
  };
};

template <>
struct Winograd<2> {
  struct Input {
    static constexpr int kIn = 4, kOut = 4;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec x1 = x[from], x2 = x[2 * from];
      y[0] = x[0] - x2;
      y[to] = x1 + x2;
      y[2 * to] = x2 - x1;
      y[3 * to] = x1 - x[3 * from];
    }
  };
  struct Output {
    static constexpr int kIn = 4, kOut = 2;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      y[0] = x[0] + x[from] + x[2 * from];
      y[to] = x[from] - x[2 * from] - x[3 * from];
    }
  };
  struct OutputGradient {
    static constexpr int kIn = 2, kOut = 4;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      y[0] = x[0];
      y[to] = x[0] + x[from];
      y[2 * to] = x[0] - x[from];
      y[3 * to] = -x[from];
    }
  };
  struct Weights {
    static constexpr int kIn = 3, kOut = 4;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec even = (x[0] + x[2 * from]) * Set1(0.5f), odd = x[from] * Set1(0.5f);
      y[0] = x[0];
      y[to] = even + odd;
      y[2 * to] = even - odd;
      y[3 * to] = x[2 * from];
    }
  };
  struct WeightGradient {
    static constexpr int kIn = 4, kOut = 3;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec s = (x[from] + x[2 * from]) * Set1(0.5f);
      y[0] = x[0] + s;
      y[to] = (x[from] - x[2 * from]) * Set1(0.5f);
      y[2 * to] = s + x[3 * from];
    }
  };
};

// out = T in T^T for squares in row-major order.
template <class T>
DTRAIN_INLINE void Both(const Vec (&in)[T::kIn * T::kIn], Vec (&out)[T::kOut * T::kOut]) {
  Vec half[T::kOut * T::kIn];
#pragma GCC unroll 6
  for (int j = 0; j < T::kIn; ++j) T::Apply(in + j, T::kIn, half + j, T::kIn);
#pragma GCC unroll 6
  for (int i = 0; i < T::kOut; ++i) T::Apply(half + i * T::kIn, 1, out + i * T::kOut, 1);
}

}  // namespace dtrain::DTRAIN_ISA_NS
