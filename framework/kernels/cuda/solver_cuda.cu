// The solvers' passes on the GPU: each update is one kernel over a range of the arenas; clipping takes two more.
//
// The file is compiled without fused multiply-add (tools/cmake/DtrainCuda.cmake), like the rest of the program, so that
// equal gradients give weights that are bitwise equal to the CPU's.
#include <vector>

#include "framework/device/buffer.h"
#include "framework/kernels/cuda/loops.h"
#include "framework/solver/elements.h"
#include "framework/solver/solver_loops.h"

namespace dtrain {
namespace {

constexpr int64_t kSquaresRow = 4096;  // elements that one block adds up

// Refers to the arrays of an update of elements [first, first + count) of the arenas.
template <class Step>
struct Pass {
  const Steps<Step>* steps;
  const float* more_scale;  // of the gradient; may be null
  const float* gradient;
  const float* w_in;
  float* w_out;
  float *first_state, *second_state;  // in StateNames() order; may be null
  const uint8_t* decays;              // by element; null if both kinds take the same step
  StepState* state;
  int64_t first, count;

  // Returns the step of element i.
  DT_DEVICE Step StepOf(int64_t i) const {
    Step step = decays == nullptr || decays[i] != 0 ? steps->decaying : steps->plain;
    if (more_scale != nullptr) step.gradient_scale *= *more_scale;
    return step;
  }

  // True if the step changes nothing; the weights are then what they were.
  DT_DEVICE bool Skips(int64_t i) const {
    if (!state->Skips()) return false;
    w_out[i] = w_in[i];
    return true;
  }

  DT_DEVICE void Write(int64_t i, float next) const {
    w_out[i] = next;
    if (!NotFinite(next)) return;
    NonFinitePlace& found = state->non_finite;
    const auto element = static_cast<unsigned long long>(first + i);
    found.step = state->step;  // all threads write the same value
    AtomicMin(NotFinite(gradient[i]) ? &found.gradient : &found.weight, element);
  }
};

template <class Step, class F>
void ForEachOf(CudaQueue& queue, const char* name, const Pass<Step>& pass, F f) {
  const int64_t n = pass.count;
  ForEach(queue,
          {name,
           {Reads(pass.gradient, n), Reads(pass.w_in, n), Writes(pass.w_out, n),
            Updates(pass.first_state, n), Updates(pass.second_state, n), Reads(pass.decays, n),
            Reads(pass.steps, 1), Reads(pass.more_scale, 1), Updates(pass.state, 1)}},
          n, f);
}

template <SgdKind kKind>
void SgdPass(CudaQueue& queue, const Pass<SgdStep>& pass) {
  ForEachOf(queue, "sgd", pass, [=] DT_DEVICE(int64_t i) {
    if (pass.Skips(i)) return;
    float v = kKind != SgdKind::kPlain ? pass.first_state[i] : 0;
    const float next = SgdElement<kKind>(pass.StepOf(i), pass.gradient[i], pass.w_in[i], v);
    if (kKind != SgdKind::kPlain) pass.first_state[i] = v;
    pass.Write(i, next);
  });
}

void AdamPass(CudaQueue& queue, const Pass<AdamStep>& pass) {
  ForEachOf(queue, "adam", pass, [=] DT_DEVICE(int64_t i) {
    if (pass.Skips(i)) return;
    float mean = pass.first_state[i], square = pass.second_state[i];
    const float next = AdamElement(pass.StepOf(i), pass.gradient[i], pass.w_in[i], mean, square);
    pass.first_state[i] = mean;
    pass.second_state[i] = square;
    pass.Write(i, next);
  });
}

template <bool kMomentum>
void RmsPropPass(CudaQueue& queue, const Pass<RmsPropStep>& pass) {
  ForEachOf(queue, "rmsprop", pass, [=] DT_DEVICE(int64_t i) {
    if (pass.Skips(i)) return;
    float v = pass.first_state[i], b = kMomentum ? pass.second_state[i] : 0;
    const float next =
        RmsPropElement<kMomentum>(pass.StepOf(i), pass.gradient[i], pass.w_in[i], v, b);
    if (kMomentum) pass.second_state[i] = b;
    pass.first_state[i] = v;
    pass.Write(i, next);
  });
}

// Sums the squares of rows of kSquaresRow elements, then the rows' sums, so that the order of additions depends only on
// `count`, and writes the factor of ClipScale.
struct ClipRule {
  double clip_norm, factor;
};
void ClipPass(CudaQueue& queue, const ClipRule* rule, const float* x, int64_t count, int64_t rows,
              double* sums, float* scale) {
  const auto add = [=] DT_DEVICE(double a, double b) { return a + b; };
  ForEachRow(
      queue, {"squares of rows", {Reads(x, count), Writes(sums, rows)}}, rows, kSquaresRow, 0.0,
      [=] DT_DEVICE(int64_t row, int64_t column) {
        const int64_t i = row * kSquaresRow + column;
        return i < count ? static_cast<double>(x[i]) * x[i] : 0.0;
      },
      add, [=] DT_DEVICE(int64_t row, double total) { sums[row] = total; });
  ForEachRow(
      queue, {"squares", {Reads(rule, 1), Reads(sums, rows), Writes(scale, 1)}}, 1, rows, 0.0,
      [=] DT_DEVICE(int64_t, int64_t row) { return sums[row]; }, add,
      [=] DT_DEVICE(int64_t, double total) {
        const double norm = std::sqrt(rule->factor * rule->factor * total);
        const double clip = rule->clip_norm / norm;
        *scale = static_cast<float>(clip < 1 || std::isnan(clip) ? clip : 1.0);
      });
}

class CudaSolverLoops : public SolverLoops {
 public:
  CudaSolverLoops(const Device& device, StepGraph& steps)
      : device_(device), queue_(QueueOf(device)), steps_(steps), scale_(device, sizeof(float)) {}

  bool Sgd(const Steps<SgdStep>& steps, const ArenaLayout& layout, Range range,
           const UpdateArgs& args) override {
    const auto pass = PassOf(steps, layout, range, args);
    switch (steps.plain.kind) {
      case SgdKind::kPlain:
        return AddPass(pass, SgdPass<SgdKind::kPlain>);
      case SgdKind::kMomentum:
        return AddPass(pass, SgdPass<SgdKind::kMomentum>);
      case SgdKind::kNesterov:
        return AddPass(pass, SgdPass<SgdKind::kNesterov>);
      case SgdKind::kDecay:
        return AddPass(pass, SgdPass<SgdKind::kDecay>);
    }
    return true;
  }

  bool Adam(const Steps<AdamStep>& steps, const ArenaLayout& layout, Range range,
            const UpdateArgs& args) override {
    return AddPass(PassOf(steps, layout, range, args), AdamPass);
  }

  bool RmsProp(const Steps<RmsPropStep>& steps, const ArenaLayout& layout, Range range,
               const UpdateArgs& args) override {
    const auto pass = PassOf(steps, layout, range, args);
    return AddPass(pass, args.state.size() < 2 ? RmsPropPass<false> : RmsPropPass<true>);
  }

  void Keep(int64_t count, const UpdateArgs& args) override {
    if (args.weights_out == args.weights_in) return;
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    steps_.Add({args.weights_in, args.weights_out, StepGraph::AsKey(count)},
               [this, to = args.weights_out, from = args.weights_in, bytes] {
                 queue_.Copy(to, from, bytes);
               });
  }

  ClipFactor Clip(double clip_norm, double factor, const float* x, int64_t count) override {
    const int64_t rows = (count + kSquaresRow - 1) / kSquaresRow;
    const size_t bytes = static_cast<size_t>(rows) * sizeof(double);
    if (sums_.bytes() < bytes) sums_ = Buffer(device_, bytes);
    const ClipRule* const rule = steps_.Value(ClipRule{clip_norm, factor});
    auto* const sums = static_cast<double*>(sums_.data());
    steps_.Add({rule, x, StepGraph::AsKey(count), sums},
               [=, this] { ClipPass(queue_, rule, x, count, rows, sums, scale_.f32()); });
    return {1, scale_.f32()};
  }

 private:
  template <class Step>
  Pass<Step> PassOf(const Steps<Step>& steps, const ArenaLayout& layout, Range range,
                    const UpdateArgs& args) {
    const auto state = [&](size_t i) { return i < args.state.size() ? args.state[i] : nullptr; };
    return {.steps = steps_.Value(steps),
            .more_scale = args.more_scale,
            .gradient = args.gradient,
            .w_in = args.weights_in,
            .w_out = args.weights_out,
            .first_state = state(0),
            .second_state = state(1),
            .decays = steps.decaying == steps.plain ? nullptr : DecaysOf(layout) + range.begin,
            .state = steps_.state(),
            .first = range.begin,
            .count = range.size()};
  }

  template <class Step>
  bool AddPass(const Pass<Step>& pass, void (*submit)(CudaQueue&, const Pass<Step>&)) {
    steps_.Add({pass.steps, pass.more_scale, pass.gradient, pass.w_in, pass.w_out, pass.first_state,
                pass.second_state, pass.decays, StepGraph::AsKey(pass.first),
                StepGraph::AsKey(pass.count), reinterpret_cast<const void*>(submit)},
               [this, pass, submit] { submit(queue_, pass); });
    return true;
  }

  // Returns the flags for `layout`, which are uploaded at the first update; a run has only one layout.
  const uint8_t* DecaysOf(const ArenaLayout& layout) {
    if (layout_ != &layout) {
      std::vector<uint8_t> decays(static_cast<size_t>(layout.size()));
      for (const ArenaEntry& entry : layout.entries) {
        std::fill(decays.begin() + entry.range.begin, decays.begin() + entry.range.end,
                  entry.weight_decay ? 1 : 0);
      }
      decays_ = Buffer(device_, decays.size());
      queue_.Upload(decays_.data(), decays.data(), decays.size());
      queue_.Wait();
      layout_ = &layout;
    }
    return static_cast<const uint8_t*>(decays_.data());
  }

  const Device device_;
  CudaQueue& queue_;
  StepGraph& steps_;
  Buffer sums_, scale_, decays_;
  const ArenaLayout* layout_ = nullptr;  // the layout that decays_ is for
};

std::unique_ptr<SolverLoops> MakeCudaSolverLoops(const Device& device, StepGraph& steps) {
  return std::make_unique<CudaSolverLoops>(device, steps);
}

DTRAIN_SOLVER_LOOPS(DeviceKind::kCuda, MakeCudaSolverLoops);

}  // namespace
}  // namespace dtrain
