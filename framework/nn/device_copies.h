// DeviceCopies: what the callers of a net have in the machine's memory - weights, gradients, state
// and the batch - where the kernels of a device reach it.
//
// A device that works on everybody's memory (device.h, Device::queue) gets the caller's own, and so
// does one whose memory it is already (arena.h); nothing is copied.  Else copies are asked for in the
// queue's order, and the caller's memory is left alone until the step has ended; the device's is taken
// when first needed and then stays.
//
// Gradients go down in a queue of their own, each when it is computed, beside the kernels of the layers that
// are still to come.
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

  // The arenas as they are now, or with `again` as they were brought before.  Null stays null.
  ConstArena Weights(ConstArena given, int64_t elements, bool again = false) {
    return Bring(weights_, given, elements, again);
  }
  Arena State(ConstArena given, int64_t elements, bool again = false) {
    return Bring(state_, given, elements, again);
  }
  // The batch; valid until the next call.
  std::span<const Tensor> Fields(std::span<const Tensor> host);
  // Room for the gradients; it holds what the step before left there.
  float* Gradients(Arena given, int64_t elements);

  // Back to the caller: a range of the gradients, which is there when the event has come to pass, the state, one
  // number.
  ReadyEvent ReturnGradients(Arena given, Range range);
  void ReturnState(Arena given, int64_t elements) const;
  void ReturnSum(double* host, const void* sum) const;
  void WaitForGradients() const;  // all that were returned

 private:
  // The kernels reach it where it is.
  bool InPlace(ConstArena given) const;
  Arena Bring(Buffer& copy, ConstArena given, int64_t elements, bool again);

  const Device device_;
  Buffer weights_, state_, gradients_;
  std::shared_ptr<DeviceQueue> down_;  // of gradients; null: none were returned so far
  std::vector<Buffer> field_memory_;   // by field, for the largest batch so far
  std::vector<Tensor> fields_;
};

}  // namespace dtrain
