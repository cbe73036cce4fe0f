// Solver (Caffe's word for an optimizer) turns gradients into new weights.
//
// A Solver is an immutable rule; everything that changes from step to step is in named state vectors that its caller
// owns (one arena each, same layout as the weights, zero at the start) and saves in checkpoints.  It works on any Range
// of the arenas, so that a fusion bucket, a server shard or a 1 MB slice is updated as soon as its gradient is
// complete; ranges may cut parameters.  Updating the parts of a range in any order gives the same bits as updating it
// whole, on every instruction set.  Safe to use from several threads on disjoint ranges.
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

// Upper limit of a solver's numeric keys, since its arithmetic is in fp32.
inline constexpr double kLargestRate = 3e38;

class SolverLoops;

// Holds the inputs and outputs of one update.  Every pointer addresses element `range.begin` of its arena, so that a
// server needs only its shard.
struct UpdateArgs {
  double lr = 0;
  int64_t updates = 0;       // earlier updates of these weights, for Adam's bias correction
  float gradient_scale = 1;  // multiplies the gradient first (ClipScale)
  // Multiplies it, too, in the memory of the vectors' device; null: 1.
  const float* more_scale = nullptr;
  const float* gradient = nullptr;
  const float* weights_in = nullptr;
  float* weights_out = nullptr;   // may be weights_in, or another Blob version
  std::span<float* const> state;  // in StateNames() order, updated in place
  int threads = 1;                // size of the caller's team; does not affect the bits
  // Refers to the loops of the device whose memory the vectors are in (solver_loops.h); null: host memory.
  SolverLoops* loops = nullptr;
};

class Solver {
 public:
  virtual ~Solver() = default;

  // Returns the names of the state vectors, {"momentum"}; empty if the rule has no state.
  virtual std::vector<std::string> StateNames() const = 0;

  // The rule without its momentum, and the momentum, for a worker that applies it to its own gradients before
  // compression; `solver` is null if the rule has no plain momentum (v = m v + d).
  struct WithoutMomentum {
    std::shared_ptr<const Solver> solver;
    double momentum = 0;
  };
  virtual WithoutMomentum TakeMomentum() const { return {}; }

  // Updates `range` in one pass, each parameter by args.lr times its factor (ArenaEntry::lr_factor).  Parameters with
  // factor 0 keep weight and state to the bit: neither decay nor momentum changes them.  Returns false if an updated
  // weight is NaN or infinite.
  [[nodiscard]] bool Apply(const ArenaLayout& layout, Range range, const UpdateArgs& args) const;

 protected:
  // Does the same for parameters of one factor above 0, which args.lr already includes.
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
  std::shared_ptr<const Solver> solver;  // stateless, so all updaters share it
  double lr = 0;
  double clip_norm = 0;  // 0: no clipping
  Schedule schedule;
  double warmup_epochs = 0;
  LrScaling lr_scaling = LrScaling::kNone;
};

// Reads the `solver` section.  Errors are added to the reader's document (see config::Reader); the result is then valid
// but meaningless.
SolverConfig ReadSolverConfig(config::Reader reader);

// Computes the learning rate, lr x scaling x schedule x warm-up, as a pure function of the number of applied samples.
class LearningRate {
 public:
  LearningRate(const SolverConfig& config, double epochs_total, int workers);

  // Returns the rate of a step that starts after `epochs_done` = applied samples / samples of an epoch.  Warm-up
  // multiplies the schedule's rate by a factor that rises linearly from a tenth.
  double At(double epochs_done) const;

  // Returns the factor of `lr_scaling` (1 for none): for 4 workers, 4 or 2.
  double scaling() const { return scaling_; }

 private:
  double lr_;
  double scaling_;
  double epochs_total_;
  double warmup_epochs_;
  Schedule schedule_;
};

// Clipping by global norm: a gradient longer than `clip_norm` is scaled to that norm (PyTorch's clip_grad_norm_).
//
//   args.gradient_scale = ClipScale(config.clip_norm, SumOfSquares(gradient, layout.size()));
//
// SumOfSquares adds in double, in a fixed order, so every instruction set gives the same bits.
double SumOfSquares(const float* x, int64_t count, Isa isa = CpuIsa());

// A factor that clips a gradient; where `on_device` is not null, it is there, in the memory of the gradient's device.
struct ClipFactor {
  float value = 1;
  const float* on_device = nullptr;
};

// Returns min(1, clip_norm / norm); 1 if clip_norm is 0.
float ClipScale(double clip_norm, double sum_of_squares);

}  // namespace dtrain

// `read` is a function with the signature of SolverEntry::read.
#define DTRAIN_SOLVER(name, read, help_text, default_lr)        \
  [[maybe_unused]] static const bool read##_solver_registered = \
      ::dtrain::SolverRegistry::Add(name, {read, help_text, default_lr})
