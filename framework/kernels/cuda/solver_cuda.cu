// The solvers' passes on the GPU: each update is one kernel over a range of the arenas; sums of squares take two.
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

// Refers to the arrays of an update.  `decays` holds a flag per element; it is null if both kinds of elements take the
// same step.
struct Pass {
  const float* gradient;
  const float* w_in;
  float* w_out;
  const uint8_t* decays;
  uint32_t* bad;  // set to 1 if a weight is not finite
};

template <SgdKind kKind>
void SgdPass(CudaQueue& queue, int64_t count, const Steps<SgdStep>& steps, const Pass& pass,
             float* velocity) {
  ForEach(queue,
          {"sgd",
           {Reads(pass.gradient, count), Reads(pass.w_in, count), Writes(pass.w_out, count),
            Reads(pass.decays, count), Writes(pass.bad, 1), Updates(velocity, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const bool decays = pass.decays == nullptr || pass.decays[i] != 0;
            float v = kKind != SgdKind::kPlain ? velocity[i] : 0;
            const float next = SgdElement<kKind>(decays ? steps.decaying : steps.plain,
                                                 pass.gradient[i], pass.w_in[i], v);
            if (kKind != SgdKind::kPlain) velocity[i] = v;
            pass.w_out[i] = next;
            if (NotFinite(next)) *pass.bad = 1;  // all threads write the same value
          });
}

void AdamPass(CudaQueue& queue, int64_t count, const Steps<AdamStep>& steps, const Pass& pass,
              float* m, float* v) {
  ForEach(queue,
          {"adam",
           {Reads(pass.gradient, count), Reads(pass.w_in, count), Writes(pass.w_out, count),
            Reads(pass.decays, count), Writes(pass.bad, 1), Updates(m, count), Updates(v, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const bool decays = pass.decays == nullptr || pass.decays[i] != 0;
            float mean = m[i], square = v[i];
            const float next = AdamElement(decays ? steps.decaying : steps.plain, pass.gradient[i],
                                           pass.w_in[i], mean, square);
            m[i] = mean;
            v[i] = square;
            pass.w_out[i] = next;
            if (NotFinite(next)) *pass.bad = 1;
          });
}

template <bool kMomentum>
void RmsPropPass(CudaQueue& queue, int64_t count, const Steps<RmsPropStep>& steps, const Pass& pass,
                 float* square, float* velocity) {
  ForEach(queue,
          {"rmsprop",
           {Reads(pass.gradient, count), Reads(pass.w_in, count), Writes(pass.w_out, count),
            Reads(pass.decays, count), Writes(pass.bad, 1), Updates(square, count),
            Updates(velocity, count)}},
          count, [=] DT_DEVICE(int64_t i) {
            const bool decays = pass.decays == nullptr || pass.decays[i] != 0;
            float v = square[i], b = kMomentum ? velocity[i] : 0;
            const float next = RmsPropElement<kMomentum>(decays ? steps.decaying : steps.plain,
                                                         pass.gradient[i], pass.w_in[i], v, b);
            if (kMomentum) velocity[i] = b;
            square[i] = v;
            pass.w_out[i] = next;
            if (NotFinite(next)) *pass.bad = 1;
          });
}

// Sums the squares of rows of kSquaresRow elements, then the rows' sums, so that the order of additions depends only on
// `count`.
void SquarePass(CudaQueue& queue, const float* x, int64_t count, int64_t rows, double* sums,
                double* sum) {
  const auto add = [=] DT_DEVICE(double a, double b) { return a + b; };
  ForEachRow(
      queue, {"squares of rows", {Reads(x, count), Writes(sums, rows)}}, rows, kSquaresRow, 0.0,
      [=] DT_DEVICE(int64_t row, int64_t column) {
        const int64_t i = row * kSquaresRow + column;
        return i < count ? static_cast<double>(x[i]) * x[i] : 0.0;
      },
      add, [=] DT_DEVICE(int64_t row, double total) { sums[row] = total; });
  ForEachRow(
      queue, {"squares", {Reads(sums, rows), Writes(sum, 1)}}, 1, rows, 0.0,
      [=] DT_DEVICE(int64_t, int64_t row) { return sums[row]; }, add,
      [=] DT_DEVICE(int64_t, double total) { *sum = total; });
}

class CudaSolverLoops : public SolverLoops {
 public:
  explicit CudaSolverLoops(const Device& device)
      : device_(device), queue_(QueueOf(device)), answer_(device, sizeof(double)) {}

  bool Sgd(const Steps<SgdStep>& steps, const ArenaLayout& layout, Range range,
           const UpdateArgs& args) override {
    const Pass pass = Begin(steps.decaying == steps.plain, layout, range, args);
    const auto run = [&]<SgdKind kKind>() {
      float* const velocity = kKind == SgdKind::kPlain ? nullptr : args.state[0];
      SgdPass<kKind>(queue_, range.size(), steps, pass, velocity);
    };
    switch (steps.plain.kind) {
      case SgdKind::kPlain:
        run.operator()<SgdKind::kPlain>();
        break;
      case SgdKind::kMomentum:
        run.operator()<SgdKind::kMomentum>();
        break;
      case SgdKind::kNesterov:
        run.operator()<SgdKind::kNesterov>();
        break;
      case SgdKind::kDecay:
        run.operator()<SgdKind::kDecay>();
        break;
    }
    return Answer<uint32_t>() == 0;
  }

  bool Adam(const Steps<AdamStep>& steps, const ArenaLayout& layout, Range range,
            const UpdateArgs& args) override {
    const Pass pass = Begin(steps.decaying == steps.plain, layout, range, args);
    AdamPass(queue_, range.size(), steps, pass, args.state[0], args.state[1]);
    return Answer<uint32_t>() == 0;
  }

  bool RmsProp(const Steps<RmsPropStep>& steps, const ArenaLayout& layout, Range range,
               const UpdateArgs& args) override {
    const Pass pass = Begin(steps.decaying == steps.plain, layout, range, args);
    if (args.state.size() < 2) {
      RmsPropPass<false>(queue_, range.size(), steps, pass, args.state[0], nullptr);
    } else {
      RmsPropPass<true>(queue_, range.size(), steps, pass, args.state[0], args.state[1]);
    }
    return Answer<uint32_t>() == 0;
  }

  void Keep(int64_t count, const UpdateArgs& args) override {
    if (args.weights_out == args.weights_in) return;
    queue_.Copy(args.weights_out, args.weights_in, static_cast<size_t>(count) * sizeof(float));
    queue_.Wait();
  }

  double SumOfSquares(const float* x, int64_t count) override {
    const int64_t rows = (count + kSquaresRow - 1) / kSquaresRow;
    const size_t bytes = static_cast<size_t>(rows) * sizeof(double);
    if (sums_.bytes() < bytes) sums_ = Buffer(device_, bytes);
    SquarePass(queue_, x, count, rows, static_cast<double*>(sums_.data()),
               static_cast<double*>(answer_.data()));
    return Answer<double>();
  }

 private:
  Pass Begin(bool all_alike, const ArenaLayout& layout, Range range, const UpdateArgs& args) {
    queue_.Zero(answer_.data(), sizeof(uint32_t));
    const uint8_t* const decays = all_alike ? nullptr : DecaysOf(layout) + range.begin;
    return {args.gradient, args.weights_in, args.weights_out, decays,
            static_cast<uint32_t*>(answer_.data())};
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

  template <class T>
  T Answer() {
    T answer;
    queue_.Download(&answer, answer_.data(), sizeof(T));
    queue_.Wait();
    return answer;
  }

  const Device device_;
  CudaQueue& queue_;
  Buffer answer_, sums_, decays_;
  const ArenaLayout* layout_ = nullptr;  // the layout that decays_ is for
};

std::unique_ptr<SolverLoops> MakeCudaSolverLoops(const Device& device) {
  return std::make_unique<CudaSolverLoops>(device);
}

DTRAIN_SOLVER_LOOPS(DeviceKind::kCuda, MakeCudaSolverLoops);

}  // namespace
}  // namespace dtrain
