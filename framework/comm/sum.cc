#include "framework/comm/sum.h"

#include "framework/core/isa.h"

namespace dtrain {

namespace isa_baseline {
void SumInOrder(float* to, const float* const* from, int count, int64_t n);
}
namespace isa_avx {
void SumInOrder(float* to, const float* const* from, int count, int64_t n);
}
namespace isa_avx2 {
void SumInOrder(float* to, const float* const* from, int count, int64_t n);
}
namespace isa_avx512 {
void SumInOrder(float* to, const float* const* from, int count, int64_t n);
}

void SumInOrder(float* to, const float* const* from, int count, int64_t n) {
  switch (CpuIsa()) {
    case Isa::kBaseline:
      return isa_baseline::SumInOrder(to, from, count, n);
    case Isa::kAvx:
      return isa_avx::SumInOrder(to, from, count, n);
    case Isa::kAvx2:
      return isa_avx2::SumInOrder(to, from, count, n);
    case Isa::kAvx512:
      return isa_avx512::SumInOrder(to, from, count, n);
  }
}

}  // namespace dtrain
