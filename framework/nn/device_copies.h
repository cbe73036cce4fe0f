// DeviceCopies: what the callers of a net have in the machine's memory - weights, gradients, state
// and the batch - where the kernels of a device reach it.
//
// A device that works on everybody's memory (device.h, Device::queue) gets the caller's own; nothing
// is copied.  Else copies are asked for in the queue's order, and the caller's memory is left alone
// until the step has ended; the device's is taken when first needed and then stays.
#pragma once

#include <span>
#include <vector>

#include "framework/core/layout.h"
#include "framework/device/buffer.h"
#include "framework/device/device.h"
#include "framework/device/tensor.h"

namespace dtrain {

class DeviceCopies {
 public:
  explicit DeviceCopies(const Device& device) : device_(device) {}

  // The arenas as they are now.  Null stays null.
  const float* Weights(const float* host, int64_t elements) {
    return Bring(weights_, host, elements);
  }
  float* State(const float* host, int64_t elements) { return Bring(state_, host, elements); }
  // The batch; valid until the next call.
  std::span<const Tensor> Fields(std::span<const Tensor> host);
  // Room for the gradients; it holds what the step before left there.
  float* Gradients(float* host, int64_t elements);

  // Back to the caller: a range of the gradients, the state, one number.
  void ReturnGradients(float* host, Range range) const;
  void ReturnState(float* host, int64_t elements) const;
  void ReturnSum(double* host, const void* sum) const;

 private:
  float* Bring(Buffer& copy, const float* host, int64_t elements);

  const Device device_;
  Buffer weights_, state_, gradients_;
  std::vector<Buffer> field_memory_;  // by field, for the largest batch so far
  std::vector<Tensor> fields_;
};

}  // namespace dtrain
