#include "framework/compress/gaussiank/gaussiank.h"

#include <cmath>
#include <numbers>

namespace dtrain {
namespace {

// The coefficients are those of P. J. Acklam, "An algorithm for computing the inverse normal cumulative distribution
// function".  He uses quotients of polynomials: in the middle, in the square of the distance from 0.5; in the tails, in
// sqrt(-2 log tail).
constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                         1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                         6.680131188771972e+01, -1.328068155288572e+01};
constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                         -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                         3.754408661907416e+00};
constexpr double kTail = 0.02425;

template <int kCount>
double Polynomial(const double (&coefficients)[kCount], double x) {
  double value = 0;
  for (const double coefficient : coefficients) value = value * x + coefficient;
  return value;
}

double Approximation(double tail) {
  if (tail < kTail) {
    const double q = std::sqrt(-2 * std::log(tail));
    return -Polynomial(kC, q) / (Polynomial(kD, q) * q + 1);
  }
  const double distance = 0.5 - tail, square = distance * distance;
  return Polynomial(kA, square) * distance / (Polynomial(kB, square) * square + 1);
}

}  // namespace

double UpperNormalQuantile(double tail) {
  const double z = Approximation(tail);
  const double found = 0.5 * std::erfc(z / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return z + (found - tail) / density;
}

}  // namespace dtrain
