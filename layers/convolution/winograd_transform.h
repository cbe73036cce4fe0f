// Implements the one-dimensional transforms of winograd_loops.h, each as out = T in on vectors at a given distance, and
// Both, which applies one to the rows and columns of a square.  Include this only in sources that end in _isa.cc.
//
// F(4, 3): Lavin and Gray 2015, section 4.3, the points 0, 1, -1, 2, -2, infinity
// F(2, 3): section 4.1
// F(4, 2): the same construction from the points 0, 1, -1, 2, infinity:
//   B^T  2 -1 -2  1  0    G   1/2    0     A^T  1  1  1  1  0
//        0 -2 -1  1  0       -1/2 -1/2          0  1 -1  2  0
//        0  2 -3  1  0       -1/6  1/6          0  1  1  4  0
//        0 -1  0  1  0        1/6  1/3          0  1 -1  8  1
//        0  2 -1 -2  1         0    1
#pragma once

#include "framework/device/cpu/simd.h"
#include "layers/convolution/winograd_loops.h"

namespace dtrain::DTRAIN_ISA_NS {

template <WinogradKind>
struct Winograd;

// Calls body.operator()<kind>(), for a templated lambda.
template <class Body>
DTRAIN_INLINE void ForKind(WinogradKind kind, const Body& body) {
  switch (kind) {
    case WinogradKind::kFour:
      return body.template operator()<WinogradKind::kFour>();
    case WinogradKind::kTwo:
      return body.template operator()<WinogradKind::kTwo>();
    case WinogradKind::kHalving:
      return body.template operator()<WinogradKind::kHalving>();
    case WinogradKind::kDoubling:
      return body.template operator()<WinogradKind::kDoubling>();
  }
}

template <>
struct Winograd<WinogradKind::kFour> {
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
struct Winograd<WinogradKind::kTwo> {
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

// FiveInput is B^T of F(4, 2), applied to five pixels; FiveOutput is A^T, applied to five products.
DTRAIN_INLINE void FiveInput(const Vec* x, int from, Vec* y, int to) {
  const Vec x1 = x[from], x2 = x[2 * from], x3 = x[3 * from];
  y[0] = Fma(Set1(2), x[0] - x2, x3 - x1);
  y[to] = Fma(Set1(-2), x1, x3 - x2);
  y[2 * to] = Fma(Set1(2), x1, Fma(Set1(-3), x2, x3));
  y[3 * to] = x3 - x1;
  y[4 * to] = Fma(Set1(2), x1 - x3, x[4 * from] - x2);
}

DTRAIN_INLINE void FiveOutput(const Vec* x, int from, Vec* y, int to) {
  const Vec s = x[from] + x[2 * from], d = x[from] - x[2 * from], x3 = x[3 * from];
  y[0] = x[0] + s + x3;
  y[to] = Fma(Set1(2), x3, d);
  y[2 * to] = Fma(Set1(4), x3, s);
  y[3 * to] = Fma(Set1(8), x3, d) + x[4 * from];
}

template <>
struct Winograd<WinogradKind::kHalving> {
  struct Input {
    static constexpr int kIn = 9, kOut = 9;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      FiveInput(x, 2 * from, y, to);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) y[(5 + i) * to] = x[(2 * i + 1) * from];
    }
  };
  struct Output {
    static constexpr int kIn = 9, kOut = 4;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      FiveOutput(x, from, y, to);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) y[i * to] += x[(5 + i) * from];
    }
  };
  struct OutputGradient {
    static constexpr int kIn = 4, kOut = 9;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec x1 = x[from], x2 = x[2 * from], x3 = x[3 * from];
      const Vec even = x[0] + x2, odd = x1 + x3;
      y[0] = x[0];
      y[to] = even + odd;
      y[2 * to] = even - odd;
      y[3 * to] = Fma(Set1(2), x1, x[0]) + Fma(Set1(8), x3, Set1(4) * x2);
      y[4 * to] = x3;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) y[(5 + i) * to] = x[i * from];
    }
  };
  struct Weights {
    static constexpr int kIn = 3, kOut = 6;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec x2 = x[2 * from];
      y[0] = x[0] * Set1(0.5f);
      y[to] = (x[0] + x2) * Set1(-0.5f);
      y[2 * to] = (x2 - x[0]) * Set1(1.0f / 6);
      y[3 * to] = Fma(Set1(2), x2, x[0]) * Set1(1.0f / 6);
      y[4 * to] = x2;
      y[5 * to] = x[from];
    }
  };
  struct WeightGradient {
    static constexpr int kIn = 6, kOut = 3;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      const Vec x1 = x[from], x2 = x[2 * from], x3 = x[3 * from];
      y[0] = Fma(Set1(0.5f), x[0] - x1, (x3 - x2) * Set1(1.0f / 6));
      y[to] = x[5 * from];
      y[2 * to] = Fma(Set1(-0.5f), x1, Fma(Set1(1.0f / 6), x2, x3 * Set1(1.0f / 3))) + x[4 * from];
    }
  };
};

template <>
struct Winograd<WinogradKind::kDoubling> {
  struct Input {
    static constexpr int kIn = 5, kOut = 9;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      FiveInput(x, from, y, to);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) y[(5 + i) * to] = x[i * from];
    }
  };
  struct Output {
    static constexpr int kIn = 9, kOut = 8;
    static DTRAIN_INLINE void Apply(const Vec* x, int from, Vec* y, int to) {
      FiveOutput(x, from, y + to, 2 * to);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) y[2 * i * to] = x[(5 + i) * from];
    }
  };
  using Weights = Winograd<WinogradKind::kHalving>::Weights;
};

// out = T in T^T for squares in row-major order.
template <class T>
DTRAIN_INLINE void Both(const Vec (&in)[T::kIn * T::kIn], Vec (&out)[T::kOut * T::kOut]) {
  Vec half[T::kOut * T::kIn];
#pragma GCC unroll 9
  for (int j = 0; j < T::kIn; ++j) T::Apply(in + j, T::kIn, half + j, T::kIn);
#pragma GCC unroll 9
  for (int i = 0; i < T::kOut; ++i) T::Apply(half + i * T::kIn, 1, out + i * T::kOut, 1);
}

}  // namespace dtrain::DTRAIN_ISA_NS
