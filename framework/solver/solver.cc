#include "framework/solver/solver.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/check.h"
#include "framework/solver/loops.h"
#include "framework/solver/solver_loops.h"

namespace dtrain {
namespace {

constexpr double kWarmupStart = 0.1;

LrScaling ReadLrScaling(config::Reader& reader) {
  const std::string name =
      reader.String("lr_scaling", "none")
          .OneOf({"none", "linear", "sqrt"})
          .Help("multiply lr by the number of workers (linear) or by its square root (sqrt)");
  if (name == "linear") return LrScaling::kLinear;
  return name == "sqrt" ? LrScaling::kSqrt : LrScaling::kNone;
}

double ScalingOf(LrScaling scaling, int workers) {
  if (scaling == LrScaling::kNone) return 1;
  return scaling == LrScaling::kLinear ? workers : std::sqrt(static_cast<double>(workers));
}

}  // namespace

bool Solver::Apply(const ArenaLayout& layout, Range range, const UpdateArgs& args) const {
  std::array<float*, 4> state;
  DT_CHECK(args.state.size() <= state.size()) << args.state.size() << " state vectors";
  bool finite = true;
  ForEachFactor(layout, range, [&](Range part, double factor) {
    const int64_t offset = part.begin - range.begin;
    UpdateArgs part_args = args;
    part_args.lr *= factor;
    part_args.gradient += offset;
    part_args.weights_in += offset;
    part_args.weights_out += offset;
    for (size_t i = 0; i < args.state.size(); ++i) state[i] = args.state[i] + offset;
    part_args.state = std::span(state).first(args.state.size());
    if (factor == 0) return LoopsOf(args).Keep(part.size(), part_args);
    finite &= ApplyAlike(layout, part, part_args);
  });
  return finite;
}

SolverConfig ReadSolverConfig(config::Reader reader) {
  SolverConfig config;
  config.name =
      static_cast<std::string>(reader.String("name", "sgd")
                                   .OneOf(SolverRegistry::Names())
                                   .Help("name of the optimizer; dtrain list solvers shows them"));
  const SolverEntry& entry = SolverRegistry::Get("solver", config.name);
  config.lr =
      reader.Number("lr", entry.default_lr).Above(0).Max(kLargestRate).Help("learning rate");
  config.solver = entry.read(reader);
  config.clip_norm = reader.Number("clip_norm", 0)
                         .Min(0)
                         .Max(kLargestRate)
                         .Help("clip the gradient to this L2 norm; 0: no clipping");
  config.schedule = ReadSchedule(reader.Section("schedule", "the learning-rate schedule"));
  config.warmup_epochs =
      reader.Number("warmup_epochs", 0).Min(0).Help("epochs of linear warm-up, from a tenth of lr");
  config.lr_scaling = ReadLrScaling(reader);
  return config;
}

LearningRate::LearningRate(const SolverConfig& config, double epochs_total, int workers)
    : lr_(config.lr),
      scaling_(ScalingOf(config.lr_scaling, workers)),
      epochs_total_(epochs_total),
      warmup_epochs_(config.warmup_epochs),
      schedule_(config.schedule) {}

double LearningRate::At(double epochs_done) const {
  const double rate = lr_ * scaling_ * schedule_({epochs_done, epochs_total_});
  if (epochs_done >= warmup_epochs_) return rate;
  return rate * (kWarmupStart + (1 - kWarmupStart) * epochs_done / warmup_epochs_);
}

double SumOfSquares(const float* x, int64_t count, Isa isa) {
  return DTRAIN_ISA_SELECT(isa, SumOfSquaresLoop)(x, count);
}

float ClipScale(double clip_norm, double sum_of_squares) {
  if (clip_norm == 0) return 1;
  return static_cast<float>(std::min(clip_norm / std::sqrt(sum_of_squares), 1.0));
}

}  // namespace dtrain
