// DeviceCopies copies the memory of a net's callers (weights, gradients, state and the batch) to where the kernels of a
// device can access it, and back.
//
// Nothing is copied for a device that works on host memory (device.h, Device::queue), or if the caller's memory is the
// device's already (arena.h).  Else copies are submitted to the queue, and the caller must not change its memory until
// the step has ended.  The device's memory is allocated on first use and kept.
//
// Gradients are copied back through a separate queue as soon as they are computed, concurrently with the kernels of the
// remaining layers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "framework/core/layout.h"
#include "framework/device/arena.h"
#include "framework/device/buffer.h"
#include "framework/device/device.h"
#include "framework/device/tensor.h"

namespace dtrain {

class DeviceCopies {
 public:
  explicit DeviceCopies(const Device& device) : device_(device) {}

  // Return the arenas as they are now, or with `again` the copies made before.  Null stays null.
  ConstArena Weights(ConstArena given, int64_t elements, bool again = false) {
    return Bring(weights_, given, elements, again);
  }
  Arena State(ConstArena given, int64_t elements, bool again = false) {
    return Bring(state_, given, elements, again);
  }
  // Returns the batch; valid until the next call.
  std::span<const Tensor> Fields(std::span<const Tensor> host);
  // Returns memory for the gradients; it holds the previous step's.
  float* Gradients(Arena given, int64_t elements);

  // Copy back to the caller: a range of the gradients, complete when the returned event is done; the state; one number.
  ReadyEvent ReturnGradients(Arena given, Range range);
  void ReturnState(Arena given, int64_t elements) const;
  void ReturnSum(double* host, const void* sum) const;
  void WaitForGradients() const;  // for all ReturnGradients so far

 private:
  // True if the kernels can access it in place.
  bool InPlace(ConstArena given) const;
  Arena Bring(Buffer& copy, ConstArena given, int64_t elements, bool again);

  const Device device_;
  Buffer weights_, state_, gradients_;
  std::shared_ptr<DeviceQueue> down_;  // copies gradients back; null before the first
  std::vector<Buffer> field_memory_;   // by field, for the largest batch so far
  std::vector<Tensor> fields_;
};

}  // namespace dtrain
