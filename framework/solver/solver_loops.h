// SolverLoops are the passes over the arenas that solvers consist of, implemented for one device.
//
// The CPU's are those of loops.h.  A device with its own memory registers its loops like the kernels of layers
// (nn/kernel.h), and runs them in its queue's order:
//
//   DTRAIN_SOLVER_LOOPS(DeviceKind::kCuda, MakeCudaSolverLoops);    // framework/kernels/<device>/
#pragma once

#include <functional>
#include <memory>

#include "framework/device/device.h"
#include "framework/device/step_graph.h"
#include "framework/solver/loops.h"
#include "framework/solver/solver.h"

namespace dtrain {

// Holds the step for parameters that decay, and the one for those that do not (ArenaEntry::weight_decay).
template <class Step>
struct Steps {
  Step decaying, plain;
};

class SolverLoops {
 public:
  virtual ~SolverLoops() = default;

  // Update all of `range` in one pass, as Solver::Apply, with state in StateNames() order.  They return false if a
  // weight is NaN or infinite.  Those of a device with a queue are part of a step of its StepGraph, whose state says
  // so: they return true.
  virtual bool Sgd(const Steps<SgdStep>& steps, const ArenaLayout& layout, Range range,
                   const UpdateArgs& args) = 0;
  virtual bool Adam(const Steps<AdamStep>& steps, const ArenaLayout& layout, Range range,
                    const UpdateArgs& args) = 0;
  virtual bool RmsProp(const Steps<RmsPropStep>& steps, const ArenaLayout& layout, Range range,
                       const UpdateArgs& args) = 0;

  // Sets weights_out = weights_in for `count` elements.
  virtual void Keep(int64_t count, const UpdateArgs& args) = 0;

  // Returns the factor that clips factor * x (ClipScale), where such an update multiplies by it.  Squares are added in
  // double, in an order that is fixed for the device.
  virtual ClipFactor Clip(double clip_norm, double factor, const float* x, int64_t count) = 0;
};

// Returns the loops of `device`, which add their work to the steps of `steps`, unless they work on host memory.  Throws
// ConfigError for a kind of device that has none.
std::unique_ptr<SolverLoops> MakeSolverLoops(const Device& device, StepGraph* steps);

// Returns UpdateArgs::loops, or the CPU's if that is null.
SolverLoops& LoopsOf(const UpdateArgs& args);

using SolverLoopsMaker = std::function<std::unique_ptr<SolverLoops>(const Device&, StepGraph&)>;
bool AddSolverLoops(DeviceKind device, SolverLoopsMaker make);

}  // namespace dtrain

#define DTRAIN_SOLVER_LOOPS(device, make) \
  [[maybe_unused]] static const bool make##_registered = ::dtrain::AddSolverLoops(device, make)
