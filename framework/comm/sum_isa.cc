// Compiled once per instruction set (framework/core/isa.h); reached through sum.h.
#include <cstdint>

namespace dtrain::DTRAIN_ISA_NS {

// Sixteen floats; the compiler splits them into registers of the set it compiles for.
using Vector = float __attribute__((vector_size(64), aligned(4), may_alias));

static const Vector& Load(const float* from) { return *reinterpret_cast<const Vector*>(from); }

void SumInOrder(float* to, const float* const* from, int count, int64_t n) {
  constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    Vector low = Load(from[0] + i);
    Vector high = Load(from[0] + i + kWidth);
    for (int k = 1; k < count; ++k) {
      low += Load(from[k] + i);
      high += Load(from[k] + i + kWidth);
    }
    *reinterpret_cast<Vector*>(to + i) = low;
    *reinterpret_cast<Vector*>(to + i + kWidth) = high;
  }
  for (; i < n; ++i) {
    float sum = from[0][i];
    for (int k = 1; k < count; ++k) sum += from[k][i];
    to[i] = sum;
  }
}

}  // namespace dtrain::DTRAIN_ISA_NS
