// DeviceResidual: a worker's residual in the memory of the device that computes its gradients, so
// that only the entries that a compressor selects are copied to host memory.
//
// The net writes the gradient into gradient().  The driver's gradient vector, in host memory, then
// only receives the sums.  Each worker has a DeviceResidual, with a device queue of its own that
// only the exchange thread uses.  The net has finished writing a range before the exchange asks for
// it (GradientSink).
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
  // Returns null if workers keep their residuals in host memory: the device has no memory of its
  // own, no selected entries are all-reduced (parameter servers, casts), or the whole gradient is
  // needed in host memory (gradient statistics, clipping at the worker).
  static std::unique_ptr<DeviceResidual> For(const ExchangeSpec& spec, const Device& device);

  DeviceResidual(const ExchangeSpec& spec, const Device& device);

  // Returns the device memory that the net writes the gradient into.
  Arena gradient() const { return {gradient_.f32(), net_queue_}; }

  // Adds the gradient to the residual; with momentum, updates the velocity and adds that.
  void Add(Range range);
  // The same, then moves the whole residual of the range to `to`, in host memory.
  void TakeAll(Range range, float* to);

  // Returns the residual of a unit, for a selection.
  DeviceValues& ValuesOf(Range unit);
  // Moves the entries at these places of the unit to `to` and, with `mask`, sets their velocity to zero.
  void TakeOut(Range unit, std::span<const int32_t> places, float* to, bool mask);
  // Sets the velocity of these entries to zero.  Positions are relative to `first`.
  void Mask(int64_t first, std::span<const int32_t> positions);
  // Adds entries that a sum has returned to the residual.  Positions are relative to `first`.
  void PutBack(int64_t first, const SparseView& entries);

  // Bring copies residual and velocity into the actor's vectors, TakeFrom copies them back and
  // clears those.  Call them only at a boundary.
  void Bring(ActorVectors& vectors) const;
  void TakeFrom(ActorVectors& vectors);

 private:
  const float momentum_;
  const int64_t size_;
  DeviceQueue* const net_queue_;
  const Device device_;  // with a queue of its own
  const std::unique_ptr<DeviceValues> values_;
  Buffer gradient_, residual_, velocity_;
};

}  // namespace dtrain
