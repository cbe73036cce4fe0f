// SolverLoops: the passes over the arenas that solvers are made of, as a device offers them.
//
// The CPU's are those of loops.h.  A device with memory of its own registers its own, with the
// kernels of layers (nn/kernel.h), and works on them in its queue's order:
//
//   DTRAIN_SOLVER_LOOPS(DeviceKind::kCuda, MakeCudaSolverLoops);    // framework/kernels/<device>/
#pragma once

#include <functional>
#include <memory>

#include "framework/device/device.h"
#include "framework/solver/loops.h"
#include "framework/solver/solver.h"

namespace dtrain {

// A step for the parameters that decay, and one for those that do not (ArenaEntry::weight_decay).
template <class Step>
struct Steps {
  Step decaying, plain;
};

class SolverLoops {
 public:
  virtual ~SolverLoops() = default;

  // Updates all of `range` in one pass, as Solver::Apply, with state in StateNames() order.  It has
  // been written when they return: false when a weight is NaN or infinite.
  virtual bool Sgd(const Steps<SgdStep>& steps, const ArenaLayout& layout, Range range,
                   const UpdateArgs& args) = 0;
  virtual bool Adam(const Steps<AdamStep>& steps, const ArenaLayout& layout, Range range,
                    const UpdateArgs& args) = 0;
  virtual bool RmsProp(const Steps<RmsPropStep>& steps, const ArenaLayout& layout, Range range,
                       const UpdateArgs& args) = 0;

  // weights_out = weights_in, of so many elements.
  virtual void Keep(int64_t count, const UpdateArgs& args) = 0;

  // In double; the order of the additions is the device's, and fixed.
  virtual double SumOfSquares(const float* x, int64_t count) = 0;
};

// Those of the device whose memory the arenas are in.  Throws ConfigError for a kind that has none.
std::unique_ptr<SolverLoops> MakeSolverLoops(const Device& device);

// The CPU's, where UpdateArgs::loops names no others.
SolverLoops& LoopsOf(const UpdateArgs& args);

using SolverLoopsMaker = std::function<std::unique_ptr<SolverLoops>(const Device&)>;
bool AddSolverLoops(DeviceKind device, SolverLoopsMaker make);

}  // namespace dtrain

#define DTRAIN_SOLVER_LOOPS(device, make) \
  [[maybe_unused]] static const bool make##_registered = ::dtrain::AddSolverLoops(device, make)
