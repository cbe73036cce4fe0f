#include "framework/exchange/vector_ops.h"

#include <algorithm>

#include "framework/comm/sum.h"
#include "framework/solver/solver.h"

namespace dtrain {
namespace {

class CpuVectorOps : public VectorOps {
 public:
  // 1 MB: some 100 us of memory traffic.
  int64_t slice_elements() const override { return (1 << 20) / sizeof(float); }

  void Copy(float* to, const float* from, int64_t n) override { std::copy_n(from, n, to); }

  void Sum(float* to, const float* a, const float* b, int64_t n) override {
    const float* const terms[] = {a, b};
    SumInOrder(to, terms, 2, n);
  }

  void Combine(float* to, float keep, const float* old, float factor, const float* added,
               int64_t n) override {
    for (int64_t i = 0; i < n; ++i) {
      const float old_value = old == nullptr ? 0.0f : old[i];
      const float added_value = added == nullptr ? 0.0f : added[i];
      to[i] = keep * old_value + factor * added_value;
    }
  }

  void Scale(float* values, float factor, int64_t n) override {
    for (int64_t i = 0; i < n; ++i) values[i] *= factor;
  }

  double SumOfSquares(const float* values, int64_t n) override {
    return dtrain::SumOfSquares(values, n);
  }

  bool Update(const Solver& solver, const ArenaLayout& layout, Range slice,
              const UpdateArgs& args) override {
    return solver.Apply(layout, slice, args);
  }
};

}  // namespace

std::unique_ptr<VectorOps> MakeCpuVectorOps() { return std::make_unique<CpuVectorOps>(); }

}  // namespace dtrain
