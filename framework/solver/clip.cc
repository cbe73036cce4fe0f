#include "framework/solver/clip.h"

#include <cmath>

#include "framework/solver/loops.h"

namespace dtrain {

double SumOfSquares(const float* x, int64_t count, Isa isa) {
  return DTRAIN_ISA_SELECT(isa, SumOfSquaresLoop)(x, count);
}

float ClipScale(double clip_norm, double sum_of_squares) {
  const double norm = std::sqrt(sum_of_squares);
  if (clip_norm == 0 || norm <= clip_norm) return 1;
  return static_cast<float>(clip_norm / norm);
}

}  // namespace dtrain
