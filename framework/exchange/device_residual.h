// DeviceResidual: what a worker keeps back of its gradients, in the memory of the device that computes them, so
// that only what a compressor selects leaves it.
//
// The net writes the gradient there; the exchange's own, in the machine's memory, is then where the sum
// comes to.  Each worker has one, of a queue of its own, which the thread of the exchange asks; what it
// reads has been written when it is asked for (GradientSink).
#pragma once

#include <cstdint>
#include <memory>

#include "framework/compress/device_values.h"
#include "framework/core/layout.h"
#include "framework/device/buffer.h"
#include "framework/exchange/exchange_spec.h"
#include "framework/exchange/vector_ops.h"
#include "framework/exchange/vectors.h"

namespace dtrain {

class DeviceResidual {
 public:
  // Null where workers keep their residuals in the machine's memory: without a device that has memory of
  // its own, where no sum of selections is made (messages to servers, casts), and where all of a gradient
  // is looked at there (studies, a worker's own clipping).
  static std::unique_ptr<DeviceResidual> For(const ExchangeSpec& spec, const Device& device);

  DeviceResidual(const ExchangeSpec& spec, const Device& device);

  // Where the net writes the gradient.
  Arena gradient() const { return {gradient_.f32(), net_queue_}; }

  // The gradient, or the velocity that it goes into, is added to the residual.
  void Add(Range range);
  // The same, and all of the residual comes to `to`.
  void TakeAll(Range range, float* to);

  // Of a unit, to select from.
  DeviceValues& ValuesOf(Range unit);
  // The entries at these places of it leave, and their velocity begins anew.
  void TakeOut(Range unit, std::span<const int32_t> places, float* to);
  // What a sum has returned; positions are counted from `first`.
  void PutBack(int64_t first, const SparseView& entries);

  // Copies into the vectors that the residual would be among, and out of them, which empties those.  At
  // rest.
  void Bring(ActorVectors& vectors) const;
  void TakeFrom(ActorVectors& vectors);

 private:
  const float momentum_;
  const int64_t size_;
  DeviceQueue* const net_queue_;
  const Device device_;  // with the queue of its own
  const std::unique_ptr<DeviceValues> values_;
  Buffer gradient_, residual_, velocity_;
};

}  // namespace dtrain
