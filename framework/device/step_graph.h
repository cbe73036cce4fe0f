// StepGraph: the work of a training step on a device, submitted with one call where the step is like an earlier one (a
// CUDA graph).
//
//   graph.Begin();                               // a new step
//   const Rate* rate = graph.Value(Rate{0.1f});  // differs from step to step: kernels read it there
//   graph.Add({weights, gradient}, [=] { ... kernels ... });
//   graph.Sum(loss);                             // a number that the host wants
//   graph.Launch();
//   ... more steps ...
//   for (const StepResults& of : graph.Wait()) ...
//
// A step is known by the keys of its parts, which name all that its kernels depend on but the values: addresses, shapes.
// A step with new keys is submitted kernel by kernel, so that libraries load what they need and kernels get their
// memory; the next one with the same keys is captured; the device repeats it from then on.  The calls that submit a
// part are not made again, so they must do nothing else.
//
// Nothing waits but Wait, which must be called before the results of more than kSteps steps are due.  The kernels find a
// NaN or infinity themselves (StepState): from then on they change nothing, so that the model is that of the step that
// found it, whenever the host looks.  An overflow of scaled gradients only skips its step (loss_scale.h).
//
// Only one thread may call a StepGraph, the one that submits work to the device's queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "framework/device/buffer.h"
#include "framework/device/device.h"
#include "framework/device/device_code.h"
#include "framework/device/loss_scale.h"

namespace dtrain {

// Says where the first NaN or infinity was written.
struct NonFinitePlace {
  static constexpr unsigned long long kNone = ~0ull;
  unsigned long long step = kNone;  // counted from the first step of the StepGraph, 0
  // Of that step, the first such elements of the arenas of gradients and weights; only the loss, if both are kNone.
  unsigned long long gradient = kNone, weight = kNone;
};

// In the device's memory; kernels read it, and enter what they find.
struct StepState {
  unsigned long long step = 0;  // number of the step at work
  NonFinitePlace non_finite;
  LossScale scale;  // of the step at work
  // The first element of the step's gradients that is beyond the range of fp16, likewise.
  unsigned long long overflow = NonFinitePlace::kNone;

  // True if an earlier step has found a NaN or infinity.
  DT_DEVICE bool Ended() const { return non_finite.step < step; }
  // True if this step must not change weights or the solver's vectors.
  DT_DEVICE bool Skips() const { return Ended() || overflow != NonFinitePlace::kNone; }
};

struct StepResults {
  static constexpr size_t kSums = 4;
  size_t count = 0;  // of sums
  double sums[kSums] = {};
  NonFinitePlace non_finite;
  LossScale scale;  // of the next step
};

class StepGraph {
 public:
  static constexpr size_t kSteps = 64;  // steps whose results are kept
  // Room for the values of a step: a solver has one for every change of the learning rate between layers.
  static constexpr size_t kValueBytes = 16384;
  static constexpr size_t kGraphs = 256;  // the ones used last are kept

  // `device` has a queue.  Without `captures` every step is submitted kernel by kernel.  `scale`: that of the first step.
  explicit StepGraph(const Device& device, bool captures = true, const LossScale& scale = {});
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  void Begin();
  // Returns where kernels of this step find the value, in the device's memory.
  template <class T>
  T* Value(const T& value) {
    static_assert(alignof(T) <= kAlignment);
    return static_cast<T*>(Put(&value, sizeof(T)));
  }
  using Key = std::initializer_list<const void*>;
  // `submit` runs at Launch, if at all.  Counts and ids are part of a key as AsKey.
  void Add(Key key, std::function<void()> submit) { Add(std::span(key), std::move(submit)); }
  void Add(std::span<const void* const> key, std::function<void()> submit);
  static const void* AsKey(int64_t number) { return reinterpret_cast<const void*>(number); }
  // The host gets the number that kernels of this step write to `sum`, a double in the device's memory.  The first is
  // the loss: if it is not finite, the step has found that.
  void Sum(const double* sum);
  void Launch();

  // Multiplies one value of this step, a float that Value has returned, by the step's scale.
  void ScaleLoss(const float* loss_scale);
  // Submits a kernel, within a part, that divides the gradients by the scale, and notes an overflow.
  void UnscaleGradients(float* gradients, int64_t count);

  // Waits for all steps so far, and returns the results of those that were not returned before, in order; valid until
  // the next Wait.
  std::span<const StepResults> Wait();
  // Number of steps whose results were not returned.
  size_t waiting() const { return launched_ - told_; }
  // Returns the loss scale behind the last step whose results were returned.
  const LossScale& scale() const { return scale_; }
  // True if Wait must come before the next Begin.
  bool Full() const { return waiting() == kSteps; }

  StepState* state() const { return static_cast<StepState*>(state_.data()); }

 private:
  static constexpr size_t kAlignment = 16;
  struct Known {
    std::vector<const void*> key;
    std::unique_ptr<DeviceGraph> graph;  // null: seen once
    bool refused = false;                // it cannot be captured
  };

  void* Put(const void* value, size_t bytes);
  void Submit();
  void LaunchCaptured();
  std::byte* SlotOf(uint64_t step) const;

  const Device device_;
  const bool captures_;
  PinnedBuffer values_on_host_, results_on_host_;  // rings of kSteps slots
  Buffer values_, state_;
  uint64_t launched_ = 0, told_ = 0;  // steps
  LossScale scale_;

  // The step that is being put together.
  std::vector<const void*> key_;
  std::vector<std::function<void()>> parts_;
  std::vector<const double*> sums_;
  size_t value_bytes_ = 0;
  const float* scaled_ = nullptr;  // null: none of the values

  std::vector<Known> known_;  // used last at the end
  std::vector<StepResults> results_;
};

// The kernels of a kind of device that begin and end a step.
struct StepKernels {
  // Copies `bytes` of the ring's slot for this step to `values`, and multiplies the one at `scaled`, if any, by the scale.
  void (*begin)(const Device& device, const StepState* state, const std::byte* ring,
                std::byte* values, size_t bytes, const float* scaled);
  // Writes the step's results to the ring, and counts the step.
  void (*end)(const Device& device, std::span<const double* const> sums, StepResults* ring,
              StepState* state);
  // StepGraph::UnscaleGradients; null where no loss is scaled.
  void (*unscale)(const Device& device, StepState* state, float* gradients,
                  int64_t count) = nullptr;
};
bool AddStepKernels(DeviceKind device, const StepKernels& kernels);

}  // namespace dtrain

#define DTRAIN_STEP_KERNELS(device, kernels)                \
  [[maybe_unused]] static const bool kernels##_registered = \
      ::dtrain::AddStepKernels(device, kernels)
