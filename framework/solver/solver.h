// Solver ("optimizer" elsewhere; the word is Caffe's): turns gradients into new weights.
//
// A Solver is an immutable rule; all that changes from step to step lies in named state vectors
// that its caller owns (one arena each, same layout as the weights, zero at the start) and saves in
// checkpoints.  It works on any Range of the arenas, so that a fusion bucket, a server shard or a
// 1 MB slice is updated as soon as its gradient is complete; ranges may cut parameters.  Updating
// the pieces of a range in any order gives the same bits as updating it whole, on every instruction
// set.  Safe to use from several threads on disjoint ranges.
//
//   SolverConfig config = ReadSolverConfig(root.Section("solver"));
//   const LearningRate lr(config, epochs, workers);
//   config.solver->Apply(layout, range, {.lr = lr.At(epochs_done), .gradient = ..., ...});
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/config/reader.h"
#include "framework/core/isa.h"
#include "framework/core/layout.h"
#include "framework/core/registry.h"
#include "framework/solver/schedule.h"

namespace dtrain {

// The largest number of a solver's keys: its arithmetic is in fp32.
inline constexpr double kLargestRate = 3e38;

class SolverLoops;

// What one update reads and writes.  Every pointer addresses element `range.begin` of its arena (so
// that a server may hold its shard only).
struct UpdateArgs {
  double lr = 0;
  int64_t updates = 0;       // that these weights have had before: Adam's bias correction
  float gradient_scale = 1;  // multiplies the gradient first (ClipScale)
  const float* gradient = nullptr;
  const float* weights_in = nullptr;
  float* weights_out = nullptr;   // may be weights_in, or another Blob version
  std::span<float* const> state;  // in StateNames() order, updated in place
  int threads = 1;                // of the caller's team; changes no bits
  // Of the device whose memory all of it is (solver_loops.h); null: the machine's.
  SolverLoops* loops = nullptr;
};

class Solver {
 public:
  virtual ~Solver() = default;

  // {"momentum"}; empty when the rule keeps nothing.
  virtual std::vector<std::string> StateNames() const = 0;

  // The same rule without its momentum, for a worker that applies it to its own gradients before they are
  // compressed, and that momentum; null where the rule has none of the plain kind (v = m v + d).
  struct WithoutMomentum {
    std::shared_ptr<const Solver> solver;
    double momentum = 0;
  };
  virtual WithoutMomentum TakeMomentum() const { return {}; }

  // Updates `range` in one pass, each parameter by args.lr times its factor (ArenaEntry::lr_factor).  One with factor 0
  // keeps weight and state to the bit: neither decay nor what its momentum was moves it.  False when a weight that
  // was updated is NaN or infinite.
  [[nodiscard]] bool Apply(const ArenaLayout& layout, Range range, const UpdateArgs& args) const;

 protected:
  // The same for parameters whose factors, above 0, are taken into args.lr.
  [[nodiscard]] virtual bool ApplyAlike(const ArenaLayout& layout, Range range,
                                        const UpdateArgs& args) const = 0;
};

struct SolverEntry {
  std::function<std::shared_ptr<const Solver>(config::Reader&)> read;  // reads its own keys
  std::string help;
  double default_lr = 0.01;
};

using SolverRegistry = Registry<SolverEntry>;

enum class LrScaling { kNone, kLinear, kSqrt };

struct SolverConfig {
  std::string name;                      // "sgd"
  std::shared_ptr<const Solver> solver;  // stateless, so shared by all who update
  double lr = 0;
  double clip_norm = 0;  // 0: no clipping
  Schedule schedule;
  double warmup_epochs = 0;
  LrScaling lr_scaling = LrScaling::kNone;
};

// Reads the `solver` section.  Mistakes are noted in the reader's document (see config::Reader),
// the result is then valid but meaningless.
SolverConfig ReadSolverConfig(config::Reader reader);

// lr x scaling x schedule x warm-up, as a pure function of the samples applied.
class LearningRate {
 public:
  LearningRate(const SolverConfig& config, double epochs_total, int workers);

  // Rate of a step that starts after `epochs_done` = samples applied / samples of an epoch.
  // Warm-up rises linearly from a tenth of the rate, over the schedule's own curve.
  double At(double epochs_done) const;

  // What `lr_scaling` multiplied the configured rate by (1 for none): 4 workers give 4 or 2.
  double scaling() const { return scaling_; }

 private:
  double lr_;
  double scaling_;
  double epochs_total_;
  double warmup_epochs_;
  Schedule schedule_;
};

// Clipping by global norm: the whole gradient is shortened to `clip_norm` where it is longer
// (PyTorch's clip_grad_norm_).
//
//   args.gradient_scale = ClipScale(config.clip_norm, SumOfSquares(gradient, layout.size()));
//
// In double, in a fixed order: the same bits on every instruction set.
double SumOfSquares(const float* x, int64_t count, Isa isa = CpuIsa());

// min(1, clip_norm / norm); 1 when clip_norm is 0.
float ClipScale(double clip_norm, double sum_of_squares);

}  // namespace dtrain

// `read` is a function with the signature of SolverEntry::read.
#define DTRAIN_SOLVER(name, read, help_text, default_lr)        \
  [[maybe_unused]] static const bool read##_solver_registered = \
      ::dtrain::SolverRegistry::Add(name, {read, help_text, default_lr})
