#include "framework/solver/solver_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "framework/core/check.h"
#include "framework/core/error.h"
#include "framework/solver/parameter_slices.h"

namespace dtrain {
namespace {

class CpuSolverLoops : public SolverLoops {
 public:
  bool Sgd(const Steps<SgdStep>& steps, const ArenaLayout& layout, Range range,
           const UpdateArgs& args) override {
    float* const velocity = args.state.empty() ? nullptr : args.state[0];
    return ForEachParameterSlice(
        layout, range, args.threads, [&](int64_t count, int64_t offset, bool decays) {
          return DTRAIN_ISA_SELECT(isa_, SgdLoop)(
              decays ? steps.decaying : steps.plain, count, args.gradient + offset,
              args.weights_in + offset, args.weights_out + offset,
              velocity == nullptr ? nullptr : velocity + offset);
        });
  }

  bool Adam(const Steps<AdamStep>& steps, const ArenaLayout& layout, Range range,
            const UpdateArgs& args) override {
    return ForEachParameterSlice(
        layout, range, args.threads, [&](int64_t count, int64_t offset, bool decays) {
          return DTRAIN_ISA_SELECT(isa_, AdamLoop)(decays ? steps.decaying : steps.plain, count,
                                                   args.gradient + offset, args.weights_in + offset,
                                                   args.weights_out + offset,
                                                   args.state[0] + offset, args.state[1] + offset);
        });
  }

  bool RmsProp(const Steps<RmsPropStep>& steps, const ArenaLayout& layout, Range range,
               const UpdateArgs& args) override {
    float* const velocity = args.state.size() < 2 ? nullptr : args.state[1];
    return ForEachParameterSlice(
        layout, range, args.threads, [&](int64_t count, int64_t offset, bool decays) {
          return DTRAIN_ISA_SELECT(isa_, RmsPropLoop)(
              decays ? steps.decaying : steps.plain, count, args.gradient + offset,
              args.weights_in + offset, args.weights_out + offset, args.state[0] + offset,
              velocity == nullptr ? nullptr : velocity + offset);
        });
  }

  void Keep(int64_t count, const UpdateArgs& args) override {
    if (args.weights_out != args.weights_in) std::copy_n(args.weights_in, count, args.weights_out);
  }

  ClipFactor Clip(double clip_norm, double factor, const float* x, int64_t count) override {
    return {ClipScale(clip_norm, factor * factor * SumOfSquares(x, count, isa_))};
  }

 private:
  const Isa isa_ = CpuIsa();
};

std::map<DeviceKind, SolverLoopsMaker>& Makers() {
  static std::map<DeviceKind, SolverLoopsMaker> makers;
  return makers;
}

}  // namespace

SolverLoops& LoopsOf(const UpdateArgs& args) {
  static CpuSolverLoops cpu;  // stateless
  return args.loops == nullptr ? cpu : *args.loops;
}

bool AddSolverLoops(DeviceKind device, SolverLoopsMaker make) {
  return Makers().emplace(device, std::move(make)).second;
}

std::unique_ptr<SolverLoops> MakeSolverLoops(const Device& device, StepGraph* steps) {
  if (device.kind == DeviceKind::kCpu) return std::make_unique<CpuSolverLoops>();
  const auto it = Makers().find(device.kind);
  if (it == Makers().end()) {
    throw ConfigError(fmt::format("device '{}' has no solvers", NameOf(device.kind)),
                      "device: cpu");
  }
  DT_CHECK(steps != nullptr);
  return it->second(device, *steps);
}

}  // namespace dtrain
