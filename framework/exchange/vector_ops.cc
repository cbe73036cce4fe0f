#include "framework/exchange/vector_ops.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "framework/comm/sum.h"
#include "framework/solver/solver_loops.h"

namespace dtrain {
namespace {

constexpr uint32_t kExponent = 0x7f800000u;

class CpuVectorOps : public VectorOps {
 public:
  // A slice is 1 MB, some 100 us of memory traffic.
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

  ClipFactor Clip(double clip_norm, double factor, const float* values, int64_t n) override {
    return LoopsOf({}).Clip(clip_norm, factor, values, n);
  }

  void Zero(float* to, int64_t n) override { std::fill_n(to, n, 0.0f); }

  // The exponent bits of NaN and infinity are all ones.  The loop has no branch, so that it is
  // vectorised.
  bool Finite(const float* values, int64_t n) override {
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; ++i) {
      bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent);
    }
    return bad == 0;
  }

  void SplitRounded(Wire wire, float* to, float* from, int64_t n) override {
    dtrain::SplitRounded(wire, to, from, n);
  }

  void Scatter(float* to, int64_t first, const SparseView& from) override {
    for (int64_t i = 0; i < from.count; ++i) to[from.positions[i] - first] = from.values[i];
  }

  void ScatterAdd(float* to, int64_t first, float factor, const SparseView& from) override {
    for (int64_t i = 0; i < from.count; ++i) {
      to[from.positions[i] - first] += factor * from.values[i];
    }
  }

  int64_t AddSparse(int32_t* positions, float* values, const SparseView& a, float factor,
                    const SparseView& b) override {
    constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();
    int64_t i = 0, j = 0, count = 0;
    while (i < a.count || j < b.count) {
      const int32_t at_a = i < a.count ? a.positions[i] : kEnd;
      const int32_t at_b = j < b.count ? b.positions[j] : kEnd;
      float value = at_a <= at_b ? a.values[i] : factor * b.values[j];
      if (at_a == at_b) value += factor * b.values[j];
      positions[count] = std::min(at_a, at_b);
      values[count++] = value;
      i += at_a <= at_b;
      j += at_b <= at_a;
    }
    return count;
  }

  void MoveOut(float* from, int64_t first, const int32_t* positions, float* values,
               int64_t count) override {
    for (int64_t i = 0; i < count; ++i) {
      float& value = from[positions[i] - first];
      values[i] = value;
      value = 0;
    }
  }

  bool Update(const Solver& solver, const ArenaLayout& layout, Range slice,
              const UpdateArgs& args) override {
    return solver.Apply(layout, slice, args);
  }
};

class DeviceVectorOps : public CpuVectorOps {
 public:
  DeviceVectorOps(const Device& device, StepGraph* steps)
      : loops_(MakeSolverLoops(device, steps)) {}

  int64_t slice_elements() const override { return std::numeric_limits<int64_t>::max() / 2; }

  ClipFactor Clip(double clip_norm, double factor, const float* values, int64_t n) override {
    return loops_->Clip(clip_norm, factor, values, n);
  }

  bool Update(const Solver& solver, const ArenaLayout& layout, Range slice,
              const UpdateArgs& args) override {
    UpdateArgs device_args = args;
    device_args.loops = loops_.get();
    return solver.Apply(layout, slice, device_args);
  }

 private:
  const std::unique_ptr<SolverLoops> loops_;
};

}  // namespace

std::unique_ptr<VectorOps> MakeCpuVectorOps() { return std::make_unique<CpuVectorOps>(); }

std::unique_ptr<VectorOps> MakeDeviceVectorOps(const Device& device, StepGraph* steps) {
  return std::make_unique<DeviceVectorOps>(device, steps);
}

}  // namespace dtrain
